// Drives ali-ons; ../README.md says how it is spoken to.
'use strict';

// Before the library is loaded, which warns by console.warn and in places prints by console.log.
console.log = console.error;

const readline = require('node:readline');
const { consumers } = require('./consumers');
const { describeError, say } = require('./lines');
const { bePatient } = require('./patience');
const { producers } = require('./producers');
const { version } = require('ali-ons/package.json');

const ops = { ...producers.ops, ...consumers.ops };

async function answer(request) {
  try {
    const op = ops[request.op];
    if (!op) {
      throw new Error(`no operation ${request.op}`);
    }
    say({ id: request.id, ok: await op(request) });
  } catch (error) {
    say({ id: request.id, error: describeError(error) });
  }
}

async function main() {
  bePatient();
  say({
    ready: {
      client: 'ali-ons',
      version,
      ops: Object.keys(ops).sort(),
      lacks: ['new_topic', 'reset', 'trace'],
    },
  });
  const running = [];
  for await (const line of readline.createInterface({ input: process.stdin })) {
    running.push(answer(JSON.parse(line)));
  }
  await Promise.all(running);
  await consumers.shutdown();
  await producers.shutdown();
  // The library's producer for messages sent back, one for the whole process, cannot be closed.
  process.exit(0);
}

main();

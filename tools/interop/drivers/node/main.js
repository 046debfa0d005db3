// Drives ali-ons; ../README.md describes the lines it reads and writes.
'use strict';

// Before the library is loaded, because it also prints to standard output, by console.log.
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
  // The library has one producer in the process for messages sent back; it cannot be closed.
  process.exit(0);
}

main();

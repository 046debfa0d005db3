// The operations of producers.
'use strict';

const { Producer } = require('ali-ons');
const { Registry, describeError, describeResult, makeMessage, options } = require('./lines');

const started = new Registry();

async function start(request) {
  const more = {};
  if (request.compress_over !== undefined) {
    more.compressMsgBodyOverHowmuch = request.compress_over;
  }
  const producer = new Producer({ ...options(request), producerGroup: request.group, ...more });
  producer.on('error', error => console.error(error));
  await producer.ready();
  started.add(request.name, producer);
  return {};
}

async function outcome(producer, message) {
  try {
    return describeResult(await producer.send(makeMessage(message)));
  } catch (error) {
    return { error: describeError(error) };
  }
}

async function send(request) {
  const producer = started.find(request.producer);
  const results = [];
  for (const message of request.messages) {
    results.push(await outcome(producer, message));
  }
  return { results };
}

async function sendAtOnce(request) {
  const producer = started.find(request.producer);
  return { results: await Promise.all(request.messages.map(message => outcome(producer, message))) };
}

async function stop(request) {
  await started.take(request.producer).close();
  return {};
}

async function shutdown() {
  for (const producer of started.members.values()) {
    await producer.close();
  }
}

module.exports = {
  producers: {
    ops: {
      'producer.start': start,
      'producer.stop': stop,
      'send.sync': send,
      'send.delayed': send,
      'send.async': sendAtOnce,
    },
    shutdown,
  },
};

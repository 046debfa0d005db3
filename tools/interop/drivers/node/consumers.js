// The operations of push consumers.
'use strict';

const { Consumer } = require('ali-ons');
const { Registry, describeMessage, options, say } = require('./lines');

const started = new Registry();

// A consumer and the behaviour of its listener.
class Listening {
  constructor(request) {
    this.name = request.name;
    this.failTimes = request.fail_times || 0;
    this.calls = new Map();
    this.released = new Promise(resolve => {
      this.release = resolve;
    });
    if (!request.hold) {
      this.release();
    }
    const more = {};
    if (request.threads !== undefined) {
      more.parallelConsumeLimit = request.threads;
    }
    if (request.max_reconsume_times !== undefined) {
      more.maxReconsumeTimes = request.max_reconsume_times;
    }
    this.consumer = new Consumer({
      ...options(request),
      consumerGroup: request.group,
      isBroadcast: request.model === 'BROADCASTING',
      consumeFromWhere:
        request.from === 'first' ? 'CONSUME_FROM_FIRST_OFFSET' : 'CONSUME_FROM_LAST_OFFSET',
      ...more,
    });
    this.consumer.on('error', error => console.error(error));
  }

  async start(request) {
    await this.consumer.ready();
    const wanted =
      request.expression_type === 'SQL92'
        ? { expressionType: 'SQL92', subString: request.expression }
        : request.expression;
    this.consumer.subscribe(request.topic, wanted, async (message, queue) => this.consume(message, queue));
  }

  async consume(message, queue) {
    say({ event: 'delivered', consumer: this.name, messages: [describeMessage(message, queue)] });
    await this.released;
    const id = message.originMessageId || message.msgId;
    const calls = (this.calls.get(id) || 0) + 1;
    this.calls.set(id, calls);
    if (calls <= this.failTimes) {
      // The library ignores a returned ACTION_RETRY for a message that is redelivered.
      throw new Error(`fails on purpose, ${calls} of ${this.failTimes} times`);
    }
  }
}

async function start(request) {
  const listening = new Listening(request);
  started.add(request.name, listening);
  await listening.start(request);
  return {};
}

async function release(request) {
  started.find(request.consumer).release();
  return {};
}

async function stop(request) {
  const listening = started.take(request.consumer);
  await listening.consumer.close();
  listening.release();
  return {};
}

async function shutdown() {
  for (const listening of started.members.values()) {
    listening.release();
    await listening.consumer.close();
  }
}

module.exports = {
  consumers: {
    ops: {
      'consume.concurrent': start,
      'consume.release': release,
      'consume.stop': stop,
    },
    shutdown,
  },
};

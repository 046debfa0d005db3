// The line protocol: lines to the suite, and messages, results and errors in the form of ../README.md.
'use strict';

const { Message } = require('ali-ons');
const { PATIENCE_MS } = require('./patience');

function say(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

// The options of every producer and consumer. The library signs its requests; these servers ignore signatures.
function options(request) {
  return {
    nameSrv: request.namesrv,
    instanceName: request.name,
    connectTimeout: PATIENCE_MS,
    accessKeyId: 'nobody',
    accessKeySecret: 'nothing',
    httpclient: {
      request() {
        throw new Error('the driver gives a name server, so there is no address server to ask');
      },
    },
  };
}

function makeMessage(fields) {
  const message = new Message(fields.topic, fields.tags, fields.body);
  if (fields.tags === undefined) {
    // The library would send the text "undefined".
    delete message.properties.TAGS;
  }
  Object.assign(message.properties, fields.properties);
  if (fields.keys) {
    message.keys = fields.keys.split(' ');
  }
  if (fields.delay_level) {
    message.delayTimeLevel = fields.delay_level;
  }
  return message;
}

function describeError(error) {
  const code = typeof error.code === 'number' ? error.code : null;
  return { type: error.name, code, text: error.message };
}

function describeResult(result) {
  return {
    status: result.sendStatus,
    id: null,
    offset_id: result.msgId,
    broker: result.messageQueue.brokerName,
    queue: Number(result.messageQueue.queueId),
    offset: result.queueOffset,
    region: null,
    transaction_state: null,
  };
}

function describeMessage(message, queue) {
  return {
    topic: message.topic,
    broker: queue ? queue.brokerName : null,
    queue: message.queueId,
    offset: message.queueOffset,
    id: null,
    offset_id: message.msgId,
    body: message.body.toString(),
    tags: message.tags === undefined ? null : message.tags,
    keys: message.keys === undefined ? null : message.keys,
    properties: message.properties,
    reconsume_times: message.reconsumeTimes,
    born_ms: message.bornTimestamp,
    store_ms: message.storeTimestamp,
    store_host: message.storeHost,
    sys_flag: message.sysFlag,
  };
}

// Producers or consumers, by the names that the suite gave them.
class Registry {
  constructor() {
    this.members = new Map();
  }

  add(name, member) {
    this.members.set(name, member);
  }

  find(name) {
    const member = this.members.get(name);
    if (!member) {
      throw new Error(`nothing was started as ${name}`);
    }
    return member;
  }

  take(name) {
    const member = this.find(name);
    this.members.delete(name);
    return member;
  }
}

module.exports = {
  Registry,
  describeError,
  describeMessage,
  describeResult,
  makeMessage,
  options,
  say,
};

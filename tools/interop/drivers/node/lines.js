// What the suite is told: its lines, and messages, results and errors as ../README.md has them.
'use strict';

const { Message } = require('ali-ons');
const { PATIENCE_MS } = require('./patience');

function say(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

// What every producer and consumer of the library is told. It signs its requests, with no use where nobody
// looks at signatures.
function options(request) {
  return {
    nameSrv: request.namesrv,
    instanceName: request.name,
    connectTimeout: PATIENCE_MS,
    accessKeyId: 'nobody',
    accessKeySecret: 'nothing',
    httpclient: {
      request() {
        throw new Error('a name server was given; there is no address server to ask');
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

// What the suite started, by the names it gave.
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

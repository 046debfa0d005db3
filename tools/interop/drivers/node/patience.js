// Makes the library wait for every answer. Its limits are constants, most of them 3 s, which a busy machine
// may exceed. If the first heartbeat of a consumer exceeds its limit, the query for the group's consumers
// fails. The library then never begins to consume.
'use strict';

const Channel = require('ali-ons/lib/channel');

// The suite's own bound is shorter.
const PATIENCE_MS = 600_000;

function bePatient() {
  const { invoke } = Channel.prototype;
  Channel.prototype.invoke = function(command) {
    return invoke.call(this, command, PATIENCE_MS);
  };
}

module.exports = { PATIENCE_MS, bePatient };

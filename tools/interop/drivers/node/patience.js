// Makes the library wait for every answer. Its limits are constants, most of them of 3 s, which a busy machine
// meets by chance. A consumer whose first heartbeat meets one is given no message ever: the look for its
// group's members fails then, and the library does not begin to consume again.
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

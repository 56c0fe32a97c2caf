// Operation ids for Cassandra's Node.js driver: a write that is sent again takes effect once.
//
//   const helenus = require('helenus-operations');
//
//   await helenus.execute(client, 'UPDATE plays SET n = n + 1 WHERE song = ?', ['Blue in Green'],
//     { prepare: true });
//
// The id travels in the custom payload, which the driver sends with every attempt of a request. So
// its own retries, and speculative execution, are safe for statements that are not idempotent by
// themselves: they are marked idempotent, and a node that knows the id answers without doing it
// again. A program that tries again itself gives the same id:
//
//   const operation = helenus.operationId();
//   await helenus.execute(client, query, values, { prepare: true, operation });
'use strict';

const crypto = require('crypto');

const PAYLOAD_KEY = 'helenus-op';

// A new name for an operation: the 16 bytes of a UUID of version 7.
function operationId() {
  const id = Buffer.alloc(16);
  id.writeUIntBE(Date.now(), 0, 6);
  crypto.randomFillSync(id, 6);
  id[6] = 0x70 | (id[6] & 0x0f);
  id[8] = 0x80 | (id[8] & 0x3f);
  return id;
}

// The driver's options of a statement that is the operation given, or a new one.
function options(given = {}) {
  const { operation = operationId(), customPayload, ...rest } = given;
  return { ...rest, isIdempotent: true, customPayload: { ...customPayload, [PAYLOAD_KEY]: operation } };
}

// As client.execute.
function execute(client, query, parameters, given) {
  return client.execute(query, parameters, options(given));
}

// As client.batch: all of it is one operation.
function batch(client, queries, given) {
  return client.batch(queries, options(given));
}

module.exports = { operationId, options, execute, batch };

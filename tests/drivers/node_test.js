// npm's driver for Cassandra against a node: node_test.js PORT
'use strict';

const assert = require('assert');
const cassandra = require('cassandra-driver');

const { types } = cassandra;
const port = Number(process.argv[2]);

function connect(keyspace) {
  return new cassandra.Client({
    contactPoints: ['127.0.0.1'],
    protocolOptions: { port },
    localDataCenter: 'datacenter1',
    keyspace,
    policies: { reconnection: new cassandra.policies.reconnection.ConstantReconnectionPolicy(200) },
  });
}

const tests = {
  async 'the driver knows the cluster and the schema'(client) {
    assert.strictEqual(client.metadata.keyspaces.ks.strategy.endsWith('SimpleStrategy'), true);
    await client.execute('CREATE TABLE ks.m (a int, b text, c timeuuid, s int static, v ' +
      'list<text>, PRIMARY KEY ((a, b), c)) WITH CLUSTERING ORDER BY (c DESC)');
    const table = await client.metadata.getTable('ks', 'm');
    assert.deepStrictEqual(table.partitionKeys.map((c) => c.name), ['a', 'b']);
    assert.deepStrictEqual(table.clusteringKeys.map((c) => c.name), ['c']);
    assert.deepStrictEqual(table.clusteringOrder, ['DESC']);
    assert.strictEqual(table.columnsByName.s.isStatic, true);
  },

  async 'values come back as they were sent'(client) {
    const columns = {
      a_bigint: ['bigint', types.Long.MIN_VALUE],
      a_blob: ['blob', Buffer.from([0, 255])],
      a_boolean: ['boolean', false],
      a_date: ['date', new types.LocalDate(2026, 2, 28)],
      a_decimal: ['decimal', types.BigDecimal.fromString('-12.345')],
      a_double: ['double', 1.5],
      a_duration: ['duration', new types.Duration(1, 2, types.Long.fromNumber(3))],
      a_inet: ['inet', types.InetAddress.fromString('2001:db8::1')],
      an_int: ['int', -2147483648],
      a_list: ['list<text>', ['b', 'a', 'b']],
      a_map: ['map<text, int>', { a: 1 }],
      a_set: ['set<int>', [1, 2]],
      a_smallint: ['smallint', -32768],
      a_text: ['text', 'it\u2019s \u20ac'],
      a_time: ['time', types.LocalTime.fromString('23:59:59.999999999')],
      a_timestamp: ['timestamp', new Date(1700000000123)],
      a_timeuuid: ['timeuuid', types.TimeUuid.now()],
      a_tinyint: ['tinyint', 127],
      a_tuple: ['tuple<int, text>', new types.Tuple(1, 'x')],
      a_uuid: ['uuid', types.Uuid.random()],
      a_varint: ['varint', types.Integer.fromString('-123456789012345678901234567890')],
    };
    const names = Object.keys(columns);
    await client.execute(`CREATE TABLE ks.types (k int PRIMARY KEY, ${
      names.map((name) => `${name} ${columns[name][0]}`).join(', ')})`);
    await client.execute(
      `INSERT INTO ks.types (k, ${names.join(', ')}) VALUES (1${', ?'.repeat(names.length)})`,
      names.map((name) => columns[name][1]), { prepare: true });
    const row = (await client.execute('SELECT * FROM ks.types')).first();
    for (const name of names) {
      assert.deepStrictEqual(String(JSON.stringify(row[name])),
        String(JSON.stringify(columns[name][1])), name);
    }
  },

  async 'batches, and pages through all rows'(client) {
    await client.execute('CREATE TABLE ks.p (k int, c int, PRIMARY KEY (k, c))');
    const query = 'INSERT INTO ks.p (k, c) VALUES (?, ?)';
    for (let k = 0; k < 20; ++k) {
      const queries = [];
      for (let c = 0; c < 200; ++c) queries.push({ query, params: [k, c] });
      await client.batch(queries, { prepare: true, logged: false });
    }
    let rows = 0;
    let pages = 0;
    let pageState;
    do {
      const page = await client.execute('SELECT k, c FROM ks.p', [],
        { fetchSize: 333, pageState });
      rows += page.rowLength;
      pages += 1;
      pageState = page.pageState;
    } while (pageState);
    assert.strictEqual(rows, 4000);
    assert.ok(pages >= 12, String(pages));
  },

  async 'a context travels in the custom payload'(client) {
    await client.execute(
      "CREATE TABLE ks.s (k int PRIMARY KEY, v text) WITH conflicts = 'siblings'");
    await client.execute("INSERT INTO ks.s (k, v) VALUES (1, 'a')");
    const read = await client.execute('SELECT v FROM ks.s WHERE k = 1', [],
      { customPayload: { 'helenus-context': Buffer.alloc(0) } });
    const context = read.info.customPayload['helenus-context'];
    assert.ok(context.length > 0);
    await client.execute("INSERT INTO ks.s (k, v) VALUES (1, 'b')", [],
      { customPayload: { 'helenus-context': context } });
    const row = (await client.execute('SELECT v FROM ks.s WHERE k = 1')).first();
    assert.strictEqual(row.v, 'b');
  },

  async 'errors have the codes of Cassandra'(client) {
    const codes = types.responseErrorCodes;
    await assert.rejects(client.execute('SELEKT'), { code: codes.syntaxError });
    await assert.rejects(client.execute('SELECT * FROM ks.nosuch'), { code: codes.invalid });
    await assert.rejects(client.execute('CREATE TABLE ks.p (k int PRIMARY KEY)'),
      { code: codes.alreadyExists });
  },
};

async function main() {
  const client = connect();
  await client.connect();
  await client.execute('CREATE KEYSPACE ks WITH replication = ' +
    "{'class': 'SimpleStrategy', 'replication_factor': 1}");
  let failed = 0;
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test(client);
      console.log(`ok: ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED: ${name}: ${error.stack}`);
    }
  }
  await client.shutdown();
  process.exitCode = failed === 0 ? 0 : 1;
}

main();

// npm's driver for Cassandra against a node: node_test.js PORT
'use strict';

const assert = require('assert');
const cassandra = require('cassandra-driver');

const { types } = cassandra;
const port = Number(process.argv[2]);
const nodes = Number(process.env.HELENUS_NODES || '1');
const consistency = nodes === 1 ? types.consistencies.localOne : types.consistencies.quorum;

function connect(keyspace) {
  return new cassandra.Client({
    contactPoints: ['127.0.0.1'],
    protocolOptions: { port },
    localDataCenter: 'datacenter1',
    keyspace,
    queryOptions: { consistency },
    policies: { reconnection: new cassandra.policies.reconnection.ConstantReconnectionPolicy(200) },
  });
}

// Whoever started us starts the node anew when told so, and says when that is done.
const restart = () => new Promise((resolve) => {
  process.stdin.once('data', resolve);
  console.log('restart');
});

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
    // Of each type the least, the largest, and what lies at its borders.
    const { Long, LocalDate, LocalTime, BigDecimal, Integer, Duration, InetAddress } = types;
    const columns = {
      an_ascii: ['ascii', '', 'a', '~'.repeat(1000)],
      a_bigint: ['bigint', Long.MIN_VALUE, Long.MAX_VALUE, Long.ZERO, Long.NEG_ONE],
      a_blob: ['blob', Buffer.alloc(0), Buffer.from([0, 255]), Buffer.alloc(100000, 7)],
      a_boolean: ['boolean', false, true],
      a_date: ['date', new LocalDate(2026, 2, 28), new LocalDate(-2147483648),
        new LocalDate(2147483647), new LocalDate(1970, 1, 1)],
      a_decimal: ['decimal', BigDecimal.fromString('-12.345'), BigDecimal.fromString('0'),
        BigDecimal.fromString(`0.${'0'.repeat(39)}1`), BigDecimal.fromString('9'.repeat(60))],
      a_double: ['double', 1.5, Number.MAX_VALUE, Number.MIN_VALUE, -0.0],
      a_duration: ['duration', new Duration(1, 2, Long.fromNumber(3)),
        new Duration(2147483647, 2147483647, Long.MAX_VALUE),
        new Duration(-2147483648, -2147483648, Long.MIN_VALUE.add(1))],
      a_float: ['float', 1.5, 0, -3.4028234663852886e38, 1.401298464324817e-45],
      an_inet: ['inet', InetAddress.fromString('2001:db8::1'), InetAddress.fromString('0.0.0.0'),
        InetAddress.fromString('255.255.255.255'), InetAddress.fromString('::')],
      an_int: ['int', -2147483648, 2147483647, 0, -1],
      a_list: ['list<text>', ['b', 'a', 'b'], ['']],
      a_map: ['map<text, int>', { a: 1 }, { '': -1, b: 2 }],
      a_nested: ['map<text, frozen<list<int>>>', { a: [1, 2] }],
      a_set: ['set<int>', [1, 2], [-2147483648, 2147483647]],
      a_smallint: ['smallint', -32768, 32767, 0],
      a_text: ['text', '', 'it\u2019s \u20ac', '\u{10ffff}', '\u0000'],
      a_time: ['time', LocalTime.fromString('23:59:59.999999999'), LocalTime.fromString('00:00:00')],
      a_timestamp: ['timestamp', new Date(1700000000123), new Date(-8640000000000000),
        new Date(8640000000000000), new Date(0)],
      a_timeuuid: ['timeuuid', types.TimeUuid.now(), types.TimeUuid.min(new Date(0), 0)],
      a_tinyint: ['tinyint', 127, -128, 0],
      a_tuple: ['tuple<int, text>', new types.Tuple(1, 'x'), new types.Tuple(-1, '')],
      a_uuid: ['uuid', types.Uuid.random(),
        types.Uuid.fromString('ffffffff-ffff-ffff-ffff-ffffffffffff')],
      a_varint: ['varint', Integer.fromString('-123456789012345678901234567890'), Integer.ZERO,
        Integer.fromString('128'), Integer.fromString('-128'), Integer.fromString('-129')],
    };
    const names = Object.keys(columns);
    await client.execute(`CREATE TABLE ks.types (k int PRIMARY KEY, ${
      names.map((name) => `${name} ${columns[name][0]}`).join(', ')})`);
    const most = Math.max(...names.map((name) => columns[name].length - 1));
    for (let k = 0; k < most; ++k) {
      // A value beyond the last is null.
      const sent = names.map((name) => (k + 1 < columns[name].length ? columns[name][k + 1] : null));
      await client.execute(
        `INSERT INTO ks.types (k, ${names.join(', ')}) VALUES (?${', ?'.repeat(names.length)})`,
        [k, ...sent], { prepare: true });
      const row = (await client.execute('SELECT * FROM ks.types WHERE k = ?', [k],
        { prepare: true })).first();
      names.forEach((name, i) => {
        const told = JSON.stringify([row[name], String(row[name]), Object.is(row[name], -0)]);
        const asked = JSON.stringify([sent[i], String(sent[i]), Object.is(sent[i], -0)]);
        assert.strictEqual(told, asked, `${name} number ${k}`);
      });
    }
  },

  async 'batches, and pages through 100 000 rows'(client) {
    await client.execute('CREATE TABLE ks.p (k int, c int, PRIMARY KEY (k, c))');
    const query = 'INSERT INTO ks.p (k, c) VALUES (?, ?)';
    for (let k = 0; k < 200; ++k) {
      const queries = [];
      for (let c = 0; c < 500; ++c) queries.push({ query, params: [k, c] });
      await client.batch(queries, { prepare: true, logged: false });
    }
    const seen = new Set();
    let pages = 0;
    let pageState;
    do {
      const page = await client.execute('SELECT k, c FROM ks.p', [],
        { fetchSize: 3333, pageState });
      for (const row of page.rows) seen.add(row.k * 500 + row.c);
      pages += 1;
      pageState = page.pageState;
    } while (pageState);
    assert.strictEqual(seen.size, 100000);
    assert.ok(pages >= 30, String(pages));
    // By itself, too.
    let rows = 0;
    for await (const row of client.stream('SELECT k, c FROM ks.p', [],
      { fetchSize: 5000, autoPage: true })) rows += row.c >= 0 ? 1 : 0;
    assert.strictEqual(rows, 100000);
  },

  async 'logged batches, counters and user-defined types'(client) {
    await client.execute('CREATE TYPE ks.address (street text, zip int)');
    await client.execute('CREATE TABLE ks.people (k int PRIMARY KEY, home frozen<address>, ' +
      'others list<frozen<address>>)');
    await client.execute('CREATE TABLE ks.counted (k int PRIMARY KEY, n counter)');
    const query = 'INSERT INTO ks.people (k, home, others) VALUES (?, ?, ?)';
    const home = { street: '', zip: -2147483648 };
    await client.batch([{ query, params: [1, home, [home]] },
      { query, params: [2, { street: null, zip: 2147483647 }, null] }], { prepare: true });
    const rows = (await client.execute('SELECT * FROM ks.people WHERE k IN (1, 2)')).rows;
    assert.deepStrictEqual(rows.map((row) => row.home.zip).sort(), [-2147483648, 2147483647]);
    assert.deepStrictEqual(rows.find((row) => row.k === 1).others.map((a) => a.street), ['']);
    const add = 'UPDATE ks.counted SET n = n + ? WHERE k = ?';
    await client.batch([{ query: add, params: [types.Long.MAX_VALUE, 1] },
      { query: add, params: [-5, 1] }], { prepare: true, counter: true });
    const n = (await client.execute('SELECT n FROM ks.counted WHERE k = 1')).first().n;
    assert.strictEqual(String(n), '9223372036854775802');
  },

  async 'the mapper of objects'(client) {
    const { Mapper, UnderscoreCqlToCamelCaseMappings, q } = cassandra.mapping;
    await client.execute('CREATE TABLE ks.users (user_id uuid PRIMARY KEY, first_name text, ' +
      'tags set<text>)');
    await client.execute('CREATE TABLE ks.users_by_name (first_name text, user_id uuid, ' +
      'PRIMARY KEY (first_name, user_id))');
    await client.execute('CREATE TABLE ks.hits (page text PRIMARY KEY, n counter)');
    const mapper = new Mapper(client, { models: {
      User: { keyspace: 'ks', tables: ['users', 'users_by_name'],
        mappings: new UnderscoreCqlToCamelCaseMappings() },
      Hits: { keyspace: 'ks', tables: ['hits'] } } });
    const users = mapper.forModel('User');
    const [userId, other] = [types.Uuid.random(), types.Uuid.random()];
    await users.insert({ userId, firstName: 'Ada', tags: ['a', 'b'] });
    assert.deepStrictEqual((await users.get({ userId })).tags, ['a', 'b']);
    const found = (await users.find({ firstName: 'Ada' })).first();
    assert.strictEqual(found.userId.equals(userId), true);
    await users.update({ userId, firstName: 'Ada', tags: ['c'] });
    const either = await users.find({ userId: q.in_([userId, other]) });
    assert.deepStrictEqual(either.first().tags, ['c']);
    await mapper.batch([users.batching.insert({ userId: other, firstName: 'Bob' }),
      users.batching.remove({ userId, firstName: 'Ada' })]);
    assert.deepStrictEqual((await users.findAll()).toArray().map((one) => one.firstName), ['Bob']);
    const hits = mapper.forModel('Hits');
    await hits.update({ page: '/', n: q.incr(2) });
    assert.strictEqual(String((await hits.get({ page: '/' })).n), '2');
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

  async 'a trace can be read'(client) {
    const result = await client.execute('SELECT * FROM ks.p LIMIT 1', [], { traceQuery: true });
    const trace = await client.metadata.getTrace(result.info.traceId);
    assert.strictEqual(trace.parameters.query, 'SELECT * FROM ks.p LIMIT 1');
    assert.ok(trace.events.length >= 2);
  },

  async 'errors have the codes of Cassandra'(client) {
    const codes = types.responseErrorCodes;
    await assert.rejects(client.execute('SELEKT'), { code: codes.syntaxError });
    await assert.rejects(client.execute('SELECT * FROM ks.nosuch'), { code: codes.invalid });
    await assert.rejects(client.execute('CREATE TABLE ks.p (k int PRIMARY KEY)'),
      { code: codes.alreadyExists });
  },

  async 'the driver comes back after a restart'(client) {
    await client.execute('CREATE TABLE ks.r (k int PRIMARY KEY, v text)');
    const write = (k) => client.execute('INSERT INTO ks.r (k, v) VALUES (?, ?)', [k, `v${k}`],
      { prepare: true });
    await write(1);
    await restart();
    const until = Date.now() + 60000;
    for (;;) {
      try {
        await write(2);
        break;
      } catch (error) {
        if (Date.now() > until) throw error;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    }
    const rows = (await client.execute('SELECT k, v FROM ks.r')).rows;
    assert.deepStrictEqual(rows.map((row) => row.v).sort(), ['v1', 'v2']);
  },
};

async function main() {
  const client = connect();
  await client.connect();
  await client.execute('CREATE KEYSPACE ks WITH replication = ' +
    `{'class': 'SimpleStrategy', 'replication_factor': ${nodes}}`);
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
  process.exit(failed === 0 ? 0 : 1);
}

main();

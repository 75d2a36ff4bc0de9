// The rows of HTTP/2. http2.js RULE fires|does-not
const http2 = require('http2');
const [rule, kind] = process.argv.slice(2);
const fires = kind === 'fires';
const { SERVER, CLIENT } = process.env;
const origin = `http://${SERVER}:8080`;

const connect = () => new Promise((done) => {
  const session = http2.connect(origin, { localAddress: CLIENT });
  session.on('error', () => {}).once('remoteSettings', () => done(session));
});
const ask = (session, fields = {}) => new Promise((done) => {
  const stream = session.request({ ':path': '/', ...fields });
  stream.on('error', () => {}).on('close', done).resume().end();
});
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const ping = (session) => new Promise((done) => session.ping(done));

const rows = {
  async 'channel-per-call'() {
    const call = { ':method': 'POST', ':path': '/a.B/C', 'content-type': 'application/grpc', te: 'trailers' };
    let session;
    for (let nth = 0; nth < 5; nth++) {
      if (fires || !session) session = await connect();
      await ask(session, call);
      if (fires) await new Promise((done) => session.close(done));
    }
    session.close();
  },
  async 'h2-not-multiplexed'() {
    const all = [await connect()];
    for (let nth = 0; nth < 5; nth++) {
      await ask(all.at(-1));
      await pause(50);
      if (fires) all.push(await connect());
    }
    for (const session of all) session.close();
  },
  async 'h2-stream-limit'() {
    const session = await connect();
    await Promise.all(Array.from({ length: 100 }, () => ask(session)));
    session.close();
  },
  async 'tcp-keepalive-is-not-reuse'() {
    let session = await connect();
    for (let nth = 0; nth < 4; nth++) {
      await ask(session);
      await ping(session);
      if (!fires || nth === 3) continue;
      session.close();
      session = await connect();
    }
    session.close();
  },
};

const maxConcurrentStreams = rule === 'h2-stream-limit' && fires ? 4 : 1000;
const server = http2.createServer({ settings: { maxConcurrentStreams } });
server.on('stream', (stream, fields) => {
  const isCall = fields['content-type'] === 'application/grpc';
  stream.on('error', () => {});
  setTimeout(() => {
    if (stream.destroyed) return;
    stream.respond({ ':status': 200, ...(isCall && { 'content-type': 'application/grpc' }) }, { waitForTrailers: isCall });
    if (isCall) stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end('ok');
  }, 5);
});
if (process.env.SERVED) rows[rule]();
else server.listen(8080, SERVER, () => rows[rule]().finally(() => server.close()));

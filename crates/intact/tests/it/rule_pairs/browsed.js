// The servers of the HTTP/2 rows that Chromium asks. browsed.js RULE fires|does-not HOST
const { createSecureServer } = require('http2');
const { readFileSync } = require('fs');
const [rule, kind, host] = process.argv.slice(2);
const fires = kind === 'fires';
const { FOLDER } = process.env;

const isLimited = rule === 'h2-stream-limit' && fires;
const server = createSecureServer({
  cert: readFileSync(`${FOLDER}/cert.pem`),
  key: readFileSync(`${FOLDER}/key.pem`),
  settings: { maxConcurrentStreams: isLimited ? 4 : 1000 },
});
server.on('stream', (stream, fields) => {
  stream.on('error', () => {});
  const respond = () => {
    if (stream.destroyed) return;
    stream.respond({ ':status': 200, 'access-control-allow-origin': '*' });
    stream.end('ok');
  };
  if (rule === 'lost-in-drain' && fields[':method'] === 'POST') {
    stream.session.goaway();
    if (fires) return setTimeout(() => stream.session.destroy(), 100);
  }
  setTimeout(respond, 5);
});
server.listen(8080, host, () => console.log('listens'));
process.stdin.resume().on('end', () => process.exit());

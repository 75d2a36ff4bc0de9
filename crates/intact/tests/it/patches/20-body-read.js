// Yes: 11 of 11 avoidable connections are gone
const http = require('node:http');
const [host, port] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true });
const call = () => new Promise((done, fail) => {
  http.get({ host, port, path: '/bytes/5000', agent }, () => done()).on('error', fail);
});
(async () => {
  for (let number = 0; number < 12; number += 1) await call();
  process.exit();
})();
// --- head
const http = require('node:http');
const [host, port] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true });
const call = () => new Promise((done, fail) => {
  http.get({ host, port, path: '/bytes/5000', agent }, (response) => {
    response.resume();
    response.on('end', () => setImmediate(done));
  }).on('error', fail);
});
(async () => {
  for (let number = 0; number < 12; number += 1) await call();
  process.exit();
})();

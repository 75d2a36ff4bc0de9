// Yes: 11 of 11 avoidable connections are gone
const http = require('node:http');
const [host, port] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: false });
const call = (path) => new Promise((done, fail) => {
  http.get({ host, port, path, agent }, (response) => {
    response.resume();
    response.on('end', () => setImmediate(done));
  }).on('error', fail);
});
(async () => {
  for (let number = 0; number < 12; number += 1) await call(`/${number}`);
  process.exit();
})();
// --- head
const http = require('node:http');
const [host, port] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true });
const call = (path) => new Promise((done, fail) => {
  http.get({ host, port, path, agent }, (response) => {
    response.resume();
    response.on('end', () => setImmediate(done));
  }).on('error', fail);
});
(async () => {
  for (let number = 0; number < 12; number += 1) await call(`/${number}`);
  process.exit();
})();

// No
const http = require('node:http');
const [host, port] = process.argv.slice(2);
const call = (path) => new Promise((done, fail) => {
  const agent = new http.Agent({ keepAlive: false });
  http.get({ host, port, path, agent }, (response) => {
    response.resume();
    response.on('end', done);
  }).on('error', fail);
});
(async () => {
  for (let number = 0; number < 12; number += 1) await call(`/${number}`);
  process.exit();
})();
// --- head
const http = require('node:http');
const [host, port] = process.argv.slice(2);
const call = (path) => new Promise((done, fail) => {
  const agent = new http.Agent({ keepAlive: true });
  http.get({ host, port, path, agent }, (response) => {
    response.resume();
    response.on('end', done);
  }).on('error', fail);
});
(async () => {
  for (let number = 0; number < 12; number += 1) await call(`/${number}`);
  process.exit();
})();

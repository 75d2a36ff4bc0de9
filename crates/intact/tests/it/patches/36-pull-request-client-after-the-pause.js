// serve: --idle-timeout 500ms
// Yes: failed requests 3 of 12 → 0 of 12; gone: stale-reuse
// request: microsoft/azure-pipelines-agent#5615, Avoid stale connection when creating release PRs
const http = require('node:http');
const [host, port] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true });
const once = (path) => new Promise((done, fail) => {
  const request = http.request({ host, port, path, method: 'POST', agent }, (response) => {
    response.resume();
    response.on('end', () => setImmediate(done));
  });
  request.on('error', fail);
  request.end('order');
});
// a long job that keeps the process from seeing what happens to its sockets
const work = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 900);
(async () => {
  for (let number = 0; number < 4; number += 1) {
    await once(`/${number}`).catch(() => {});
    if (number === 1) work();
  }
  process.exit();
})();
// --- head
const http = require('node:http');
const [host, port] = process.argv.slice(2);
let agent = new http.Agent({ keepAlive: true });
const once = (path) => new Promise((done, fail) => {
  const request = http.request({ host, port, path, method: 'POST', agent }, (response) => {
    response.resume();
    response.on('end', () => setImmediate(done));
  });
  request.on('error', fail);
  request.end('order');
});
// a long job that keeps the process from seeing what happens to its sockets
const work = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 900);
(async () => {
  for (let number = 0; number < 4; number += 1) {
    await once(`/${number}`).catch(() => {});
    if (number === 1) {
      work();
      agent = new http.Agent({ keepAlive: true });
    }
  }
  process.exit();
})();

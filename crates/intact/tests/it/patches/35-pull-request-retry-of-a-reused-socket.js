// No: failed requests 3 of 18 → 6 of 21; new: retried-request
// request: sanity-io/get-it#460, retry keep alive econnreset when reusedSockets
const http = require('node:http');
const [host, port] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true });
const once = (method, path) => new Promise((done, fail) => {
  const request = http.request({ host, port, path, method, agent }, (response) => {
    response.resume();
    response.on('end', () => setImmediate(done));
  });
  request.on('error', (error) => fail(Object.assign(error, { reused: request.reusedSocket })));
  request.end(method === 'POST' ? 'order' : undefined);
});
const call = (method, path) => once(method, path);
(async () => {
  for (let number = 0; number < 6; number += 1) {
    const path = number === 3 ? '/fault/reset-before-answer' : '/';
    await call('POST', path).catch(() => {});
  }
  process.exit();
})();
// --- head
const http = require('node:http');
const [host, port] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true });
const once = (method, path) => new Promise((done, fail) => {
  const request = http.request({ host, port, path, method, agent }, (response) => {
    response.resume();
    response.on('end', () => setImmediate(done));
  });
  request.on('error', (error) => fail(Object.assign(error, { reused: request.reusedSocket })));
  request.end(method === 'POST' ? 'order' : undefined);
});
const again = (error) => error.code === 'ECONNRESET' && error.reused;
const call = (method, path) => once(method, path).catch((error) => {
  if (!again(error)) throw error;
  return once(method, path);
});
(async () => {
  for (let number = 0; number < 6; number += 1) {
    const path = number === 3 ? '/fault/reset-before-answer' : '/';
    await call('POST', path).catch(() => {});
  }
  process.exit();
})();

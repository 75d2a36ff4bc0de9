// Opens connections at known lines: `// CASE=N` at its end says which case opens how many there.
import http from 'node:http';
import net from 'node:net';
import { Worker, isMainThread, workerData } from 'node:worker_threads';

const port = isMainThread ? Number(process.argv[2]) : workerData;
const url = `http://127.0.0.1:${port}/`;

function close(socket) {
  return new Promise((done) => socket.on('close', done).resume());
}

function get(options) {
  return new Promise((done, failed) => {
    const request = http.get({ host: '127.0.0.1', port, agent: false, ...options }, (response) => { // http=3 parallel=3 timer=2 name=2
      response.resume();
      response.on('end', done);
    });
    request.on('error', failed);
  });
}

async function fetched() {
  const response = await fetch(url, { // fetch=1
    headers: { connection: 'close' },
  });
  await response.text();
}

async function posted() {
  // a body is read in a microtask of the client's own, and only then it connects
  const response = await fetch(url, { // post=2 both=2
    method: 'POST',
    headers: { connection: 'close' },
    body: '{}',
  });
  await response.text();
}

async function put() {
  const response = await fetch(url, { method: 'PUT', headers: { connection: 'close' }, body: 'x' }); // both=2
  await response.text();
}

async function later(function_) {
  await null;
  await new Promise((done) => setImmediate(done));
  return function_();
}

const arrow = async () => {
  const socket = net.connect(port, '127.0.0.1'); // arrow=2
  socket.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await close(socket);
};

class First {
  async fetch() {
    const socket = net.connect(port, '127.0.0.1'); // same=2
    socket.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    await close(socket);
  }
}

class Second {
  async fetch() {
    const socket = new net.Socket();
    socket.connect({ port, host: '127.0.0.1' }); // same=3
    socket.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    await close(socket);
  }
}

function wrapped(function_) {
  return (...values) => function_(...values);
}

async function repeat(function_, count) {
  for (let nth = 0; nth < count; nth++) await function_();
}

function work(count) {
  const every = Array.from({ length: count }, () => {
    const worker = new Worker(new URL(import.meta.url), { workerData: port });
    return new Promise((done) => worker.on('exit', done));
  });
  return Promise.all(every);
}

const cases = {
  http: () => repeat(() => get({}), 3),
  parallel: () => Promise.all([get({}), get({}), get({})]),
  name: () => repeat(() => get({ host: 'localhost', family: 4 }), 2),
  fetch: fetched,
  post: () => repeat(posted, 2),
  both: () => Promise.all([posted(), put(), put(), posted()]),
  timer: () => repeat(() => later(() => get({})), 2),
  arrow: () => repeat(wrapped(wrapped(arrow)), 2),
  same: async () => {
    await repeat(() => new First().fetch(), 2);
    await repeat(() => new Second().fetch(), 3);
  },
  worker: () => work(3),
};

async function inWorker() {
  const socket = net.connect(port, '127.0.0.1'); // worker=3
  socket.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await close(socket);
}

if (isMainThread) {
  for (const name of process.argv.slice(3)) await cases[name]();
} else {
  await inWorker();
}

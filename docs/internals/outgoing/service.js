// node service.js URL percall|kept: a service on port 18091 that calls the URL three times for each request, one call after the other,
// with an agent for each call or with one that keeps its connections.
const http = require('http');
const [url, mode] = process.argv.slice(2);
const kept = new http.Agent({ keepAlive: true });

function call() {
  const agent = mode === 'kept' ? kept : new http.Agent();
  return new Promise((resolve, reject) => {
    http.get(url, { agent }, (response) => response.resume().on('end', resolve).on('error', reject)).on('error', reject);
  });
}

http.createServer(async (_, response) => {
  try {
    for (let nth = 0; nth < 3; nth += 1) await call();
    response.end('ok');
  } catch (error) {
    response.statusCode = 502;
    response.end(error.code);
  }
}).listen(18091, '127.0.0.1');

// A service that calls an upstream for each request, with a timeout of 250 ms and as many retries as its third argument says.
const http = require('http');
const [port, upstream, retries] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true });

function call() {
  return new Promise((resolve, reject) => {
    const request = http.get({ port: upstream, host: '127.0.0.1', agent, timeout: 250 }, (response) => {
      response.resume();
      response.on('end', resolve);
      response.on('error', reject);
    });
    request.on('timeout', () => request.destroy(new Error('timeout')));
    request.on('error', reject);
  });
}

http.createServer(async (request, response) => {
  for (let tries = 0; tries <= retries; tries += 1) {
    try {
      await call();
      return response.end('ok');
    } catch {
      // the next try
    }
  }
  response.statusCode = 503;
  return response.end('the upstream did not answer');
}).listen(port, '127.0.0.1');

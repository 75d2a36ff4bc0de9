// An upstream with four workers, each of which takes 20 ms for a call: 200 calls/s, as a pool of four database connections has.
// Calls wait in a queue. A caller that gives up is not noticed: its call is worked on all the same.
const http = require('http');
const WORKERS = 4, WORK_MS = 20;
const queue = [];
let busy = 0;

function work() {
  while (busy < WORKERS && queue.length > 0) {
    const response = queue.shift();
    busy += 1;
    setTimeout(() => {
      busy -= 1;
      response.end('done');
      work();
    }, WORK_MS);
  }
}

http.createServer((request, response) => {
  queue.push(response);
  work();
}).listen(Number(process.argv[2]), '127.0.0.1');

// A service that calls another one ten times a second.
const http = require('node:http');
setInterval(() => http.get(process.argv[2], { agent: false }, (response) => response.resume()), 100);

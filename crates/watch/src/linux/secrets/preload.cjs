'use strict';
// Logs the keys of this process's TLS connections for `intact watch`, as SSLKEYLOGFILE does elsewhere. Whatever goes wrong in here stays in here.
try {
  var tls = require('tls');
  var fs = require('fs');
  var connect = tls.connect;
  var log = function (line) {
    try {
      fs.appendFileSync('KEY_LOG_FILE', line);
    } catch (_) {}
  };
  tls.connect = function () {
    var socket = connect.apply(this, arguments);
    try {
      socket.on('keylog', log);
    } catch (_) {}
    return socket;
  };
  Object.defineProperty(tls.connect, 'name', { value: connect.name });
  require('module').syncBuiltinESMExports();
} catch (_) {}

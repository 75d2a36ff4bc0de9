'use strict';
// Notes for `intact watch` where in the code this process opens a TCP connection, right before it does. Whatever goes wrong in here stays in here.
try {
  var fs = require('fs');
  var net = require('net');
  var url = require('url');
  var path = require('path');
  var Module = require('module');
  var threads = require('worker_threads');
  var append = fs.appendFileSync;
  var read = fs.readFileSync;
  var ALL_OF = 200, ONE_IN = 10, DEPTH = 60;
  var loadJs = Module._extensions['.js'];
  var stacks = new WeakMap();
  var connecting = new Set();
  var counts = new Map();
  var maps = new Map();
  var hooked = new WeakSet();

  // Whether what runs may be another text than that of its file: then only a source map knows the line.
  var words = process.execArgv.join(' ') + ' ' + (process.env.NODE_OPTIONS || '');
  var mayTransform = /--(import|loader|experimental-loader|experimental-transform-types)\b/.test(words) ||
    !!process.env.JEST_WORKER_ID || !!process.env.VITEST;
  var isMadeInMemory = function (file) {
    var isPlain = /\.[cm]?js$/.test(file) || (/\.[cm]?ts$/.test(file) && process.features.typescript === 'strip');
    return mayTransform || !isPlain || Module._extensions['.js'] !== loadJs;
  };

  // The source map that a file names, if it has one.
  var mapOf = function (file) {
    var known = maps.get(file);
    if (known !== undefined) return known;
    var map = null;
    try {
      map = (Module.findSourceMap && Module.findSourceMap(file)) || null;
      if (!map) {
        var named = /\/\/[#@] sourceMappingURL=(\S+)\s*$/.exec(String(read(file)).slice(-(1 << 22)));
        if (named) {
          var data = /^data:application\/json[^,]*;base64,(.*)$/.exec(named[1]);
          var text = data ? Buffer.from(data[1], 'base64') : read(path.resolve(path.dirname(file), decodeURIComponent(named[1])));
          map = new Module.SourceMap(JSON.parse(String(text)));
        }
      }
    } catch (_) {}
    if (maps.size > 1000) maps.clear();
    maps.set(file, map);
    return map;
  };

  // File and line of a call.
  var position = function (site) {
    var file = site.getFileName() || '';
    var line = site.getLineNumber() || 0;
    if (file.startsWith('file:')) file = url.fileURLToPath(file);
    if (!path.isAbsolute(file) || file.includes('/node_modules/')) return [file, line];
    var map = mapOf(file);
    if (map) {
      var entry = map.findEntry(line - 1, (site.getColumnNumber() || 1) - 1);
      var source = entry && entry.originalSource;
      if (!source || !(entry.originalLine >= 0)) return [file, 0];
      if (source.startsWith('file:')) source = url.fileURLToPath(source);
      return [path.resolve(path.dirname(file), source), entry.originalLine + 1];
    }
    return [file, isMadeInMemory(file) ? 0 : line];
  };

  var clean = function (text) {
    return String(text).slice(0, 1024).replace(/[\x00-\x1f]/g, '?');
  };

  // The calls that lead here, in one text.
  var calls = function (from) {
    var limit = Error.stackTraceLimit, prepare = Error.prepareStackTrace, holder = {}, sites;
    try {
      Error.stackTraceLimit = DEPTH;
      Error.prepareStackTrace = function (_, all) { return all; };
      Error.captureStackTrace(holder, from);
      sites = holder.stack;
    } finally {
      Error.stackTraceLimit = limit;
      Error.prepareStackTrace = prepare;
    }
    return sites.map(function (site) {
      var at = position(site);
      return clean(site.getFunctionName() || '<anonymous>') + '\x1f' + clean(at[0]) + '\x1f' + at[1];
    }).join('\x1e');
  };

  var socketOf = function (handle) {
    var known = stacks.get(handle);
    if (known !== undefined) return known;
    // a further attempt, at another address of the name
    for (var socket of connecting) {
      var own = socket._handle;
      if (own && (own === handle || own._parent === handle)) return stacks.get(socket);
    }
  };

  var hook = function (handle) {
    var proto = Object.getPrototypeOf(handle);
    if (!proto || hooked.has(proto)) return;
    hooked.add(proto);
    ['connect', 'connect6'].forEach(function (name) {
      var call = proto[name];
      if (typeof call !== 'function') return;
      proto[name] = function (request, address, port) {
        try {
          var text = socketOf(this);
          if (text !== undefined && typeof port === 'number') {
            append('NOTES_FILE', [process.pid, threads.threadId, address, port].join('\x1f') + '\x1d' + text + '\n');
          }
        } catch (_) {}
        return call.apply(this, arguments);
      };
    });
  };

  var connect = net.Socket.prototype.connect;
  var noted = function () {
    var text;
    try {
      var one = arguments[0];
      var to = Array.isArray(one) ? one[0] : one;
      var key = typeof to === 'object' && to ? to.host + ':' + to.port : String(to);
      if (counts.size > 4096) counts.clear();
      var count = (counts.get(key) || 0) + 1;
      counts.set(key, count);
      text = count <= ALL_OF || count % ONE_IN === 0 ? calls(noted) : '';
    } catch (_) {}
    var result = connect.apply(this, arguments);
    try {
      var handle = this._handle;
      if (text !== undefined && handle) {
        handle = handle._parent || handle;
        hook(handle);
        stacks.set(handle, text);
        stacks.set(this, text);
        if (connecting.size > 64) {
          connecting.forEach(function (one) { if (!one.connecting) connecting.delete(one); });
        }
        connecting.add(this);
      }
    } catch (_) {}
    return result;
  };
  Object.defineProperty(noted, 'name', { value: connect.name });
  Object.defineProperty(noted, 'length', { value: connect.length });
  net.Socket.prototype.connect = noted;
} catch (_) {}

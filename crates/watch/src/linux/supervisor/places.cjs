'use strict';
// Notes for `intact watch` where in the code this process opens a TCP connection, right before it does. Whatever goes wrong in here stays in here.
try {
  var fs = require('fs');
  var net = require('net');
  var url = require('url');
  var path = require('path');
  var Module = require('module');
  var threads = require('worker_threads');
  var hooks = require('async_hooks');
  var channel = require('diagnostics_channel').channel;
  var append = fs.appendFileSync;
  var read = fs.readFileSync;
  var ALL_OF = 200, ONE_IN = 10, DEPTH = 60;
  var loadJs = Module._extensions['.js'];
  var stacks = new WeakMap();
  var connecting = new Set();
  var counts = new Map();
  var sources = new Map();
  var texts = new Map();
  var hooked = new WeakSet();
  var requests = new Map();

  // Whether the text of a file runs, as far as its name and the options of Node show. With a hash of what runs,
  // only of TypeScript: its types are blanked out where they are.
  var words = process.execArgv.join(' ') + ' ' + (process.env.NODE_OPTIONS || '');
  var mayTransform = /--(import|loader|experimental-loader|experimental-transform-types)\b/.test(words) ||
    !!process.env.JEST_WORKER_ID || !!process.env.VITEST;
  var isPlain = function (file, hash) {
    if (mayTransform || Module._extensions['.js'] !== loadJs) return false;
    return (!hash && /\.[cm]?js$/.test(file)) || (/\.[cm]?ts$/.test(file) && process.features.typescript === 'strip');
  };

  // The source map that a text names, and the folder that its sources are relative to.
  var mapIn = function (text, file) {
    var named = /\/\/[#@] sourceMappingURL=(\S+)\s*$/.exec(text.slice(-(1 << 22)));
    if (!named) return null;
    var data = /^data:application\/json([^,]*),(.*)$/.exec(named[1]);
    var at = data ? file : path.resolve(path.dirname(file), decodeURIComponent(named[1]));
    var json = !data ? read(at) : /;base64$/.test(data[1]) ? Buffer.from(data[2], 'base64') : decodeURIComponent(data[2]);
    return { map: new Module.SourceMap(JSON.parse(String(json))), base: path.dirname(at) };
  };

  // What is known of a file: whether what runs is its text, and its source map.
  var sourceOf = function (file, hash) {
    var key = hash + file;
    var known = sources.get(key);
    if (known !== undefined) return known;
    known = { isSame: isPlain(file, hash), map: null };
    try {
      var text = String(read(file)).replace(/^\uFEFF/, '');
      known.isSame = known.isSame || (!!hash && require('crypto').createHash('sha256').update(text).digest('hex') === hash);
      var map = Module.findSourceMap && Module.findSourceMap(file);
      known.map = map ? { map: map, base: path.dirname(file) } : known.isSame ? mapIn(text, file) : null;
    } catch (_) {}
    if (sources.size > 1000) sources.clear();
    sources.set(key, known);
    return known;
  };

  // The path of a source; empty if it is not known.
  var sourcePath = function (known, source) {
    if (source.startsWith('file:')) return url.fileURLToPath(source);
    var root = (known.map.payload || {}).sourceRoot;
    if (root) source = root.replace(/\/?$/, '/') + source;
    if (!/^[\w-]+:\/\//.test(source)) return path.resolve(known.base, source);
    // a bundler's name for a path in the project that the bundle is in
    var inside = /^(?:webpack|turbopack):\/\/([^/]*)\/(.*?)(?:\?.*)?$/.exec(source);
    if (!inside) return '';
    if (inside[2].includes('node_modules/')) return path.resolve('/', inside[2]);
    for (var folder = known.base; ; folder = path.dirname(folder)) {
      var found = path.join(folder, inside[2]);
      if (fs.existsSync(found)) {
        var isOurs = !inside[1] || JSON.parse(read(path.join(folder, 'package.json'))).name === inside[1];
        return isOurs ? found : '';
      }
      if (folder === path.dirname(folder)) return '';
    }
  };

  // File and line of a call; 0 where the line is not known.
  var position = function (site, file, hash) {
    var line = site.getLineNumber() || 0;
    if (file.startsWith('file:')) file = url.fileURLToPath(file);
    if (!path.isAbsolute(file) || file.includes('/node_modules/')) return [file, line];
    var known = sourceOf(file, hash);
    if (!known.map) return [file, known.isSame ? line : 0];
    var entry = known.map.map.findEntry(line - 1, (site.getColumnNumber() || 1) - 1);
    // one of an earlier line is about other code
    if (!entry || !entry.originalSource || entry.generatedLine !== line - 1) return [file, 0];
    try {
      var source = sourcePath(known.map, entry.originalSource);
      if (source) return [source, entry.originalLine + 1];
    } catch (_) {}
    return [file, 0];
  };

  var clean = function (text) {
    return String(text).slice(0, 1024).replace(/[\x00-\x1f]/g, '?');
  };

  // A call in one text: names and maps are looked up once for each position.
  var textOf = function (site) {
    var name = site.getFunctionName() || '<anonymous>';
    var file = site.getFileName() || '';
    var hash = site.getScriptHash ? site.getScriptHash() : '';
    var key = [hash, file, site.getLineNumber(), site.getColumnNumber(), name].join('\x1f');
    var text = texts.get(key);
    if (text === undefined) {
      var at = position(site, file, hash);
      text = clean(name) + '\x1f' + clean(at[0]) + '\x1f' + at[1];
      if (texts.size > 4096) texts.clear();
      texts.set(key, text);
    }
    return text;
  };

  // The calls that lead here.
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
    return sites;
  };

  var isWanted = function (key) {
    if (counts.size > 4096) counts.clear();
    var count = (counts.get(key) || 0) + 1;
    counts.set(key, count);
    return count <= ALL_OF || count % ONE_IN === 0;
  };

  // undici connects for a request with a body in a microtask (Node 18: at the next tick), which it asks for right
  // after it publishes the request. From Node 24 on the microtask has the store of that moment. Before, it has the
  // next number: each request takes one, so it is no other's.
  var store = parseInt(process.versions.node, 10) < 24 ? null : new hooks.AsyncLocalStorage();
  var requested = function (message) {
    try {
      var request = message.request;
      if (!request.body) return;
      var made = isWanted('with a body to ' + request.origin) ? calls(requested) : null;
      if (store) return store.enterWith(made);
      if (requests.size > 64) requests.clear();
      requests.set(new hooks.AsyncResource('places').asyncId() + 1, made);
    } catch (_) {}
  };
  channel('undici:request:create').subscribe(requested);

  // The calls that made the request for which undici connects later.
  var callsOfRequest = function (sites) {
    var made = store ? store.getStore() : requests.get(hooks.executionAsyncId());
    if (!made) return [];
    var files = sites.map(function (site) { return site.getFileName() || ''; });
    var last = files.map(function (file) { return file.includes('undici'); }).lastIndexOf(true);
    var isLater = files.slice(last + 1).every(function (file) { return /(task_queues|async_hooks)$/.test(file); }) &&
      sites.slice(Math.max(last - 1, 0), last + 1).some(function (site) { return site.getFunctionName() === 'resume'; });
    return isLater ? made : [];
  };

  // The system's number of this thread; undefined where it is not known.
  var thread;
  var threadNumber = function () {
    if (thread === undefined) {
      try {
        thread = path.basename(fs.readlinkSync('/proc/thread-self'));
      } catch (_) {
        thread = threads.isMainThread ? String(process.pid) : '';
      }
    }
    return thread;
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
            append('NOTES_FILE', [threadNumber(), address, port].join('\x1f') + '\x1d' + text + '\n');
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
      text = '';
      if (isWanted(key)) {
        var sites = calls(noted);
        text = sites.concat(callsOfRequest(sites)).slice(0, 2 * DEPTH).map(textOf).join('\x1e');
      }
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

// Records what a definition asks for. It runs before the definition, in the same engine, and knows nothing of limits but those that keep
// the record small: the values are checked in Rust.
(function (global, most) {
  "use strict";

  const stringify = JSON.stringify;
  const record = { targets: [], phases: [], sessions: [], weights: [], ignored: [], unsupported: [] };
  // the steps that are being defined; undefined outside of a session
  let block;
  let depth = 0;
  let count = 0;

  // the line of the definition that called us: the innermost frame that is not ours
  function line() {
    const frame = /intact-scenario:(\d+)/.exec(new Error().stack);
    return frame ? Number(frame[1]) : 0;
  }

  function fail(words) {
    throw new Error(words);
  }

  // a number that JSON can hold, or the text of anything else
  function given(value) {
    if (typeof value === "number" && Number.isFinite(value)) return value;
    return typeof value === "object" && value !== null ? "[object]" : String(value);
  }

  function text(what, value) {
    if (typeof value !== "string") fail(`${what} has to be a string, not ${given(value)}`);
    return value;
  }

  function note(list, value) {
    if (list.length < most.notes) list.push({ line: line(), value });
  }

  function object(what, value) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      fail(`${what} have to be an object: { name: value }`);
    }
    return Object.entries(value);
  }

  // stands for something that we do not have: whatever a definition does with it is noted and has no effect
  function missing(name) {
    return new Proxy(function () {}, {
      get(_, key) {
        if (key === Symbol.toPrimitive) {
          return () => {
            note(record.unsupported, name);
            return "";
          };
        }
        return typeof key === "symbol" ? undefined : missing(`${name}.${key}`);
      },
      apply() {
        note(record.unsupported, name);
        return missing(`${name}()`);
      },
    });
  }

  // an object without the functions of all objects, so that each name is either ours or noted
  function guarded(name, known) {
    return new Proxy(known, {
      get(target, key) {
        return typeof key === "symbol" || Object.hasOwn(target, key) ? target[key] : missing(name + key);
      },
    });
  }

  function add(name, step) {
    if (block === undefined) fail(`${name}: outside of a session; call it in the function of definition.session(...)`);
    if (++count > most.steps) fail(most.stepsWords);
    block.push({ line: line(), value: step });
  }

  // the steps that a function defines: it is called once
  function steps(name, define) {
    if (typeof define !== "function") fail(`${name}: the last argument has to be a function`);
    if (define.length > 1) {
      fail(`${name}: the function is called once and gets no number; unroll with a loop of JavaScript (for) if steps differ`);
    }
    if (++depth > most.depth) fail(`${name}: repetitions are nested ${most.depth} deep at most`);
    const outer = block;
    block = [];
    const result = define(context);
    if (result instanceof Promise) fail(`${name}: the function is async; the definition is evaluated once, without waiting`);
    const inner = block;
    block = outer;
    depth--;
    return inner;
  }

  function form(fields) {
    const encode = (word) => encodeURIComponent(String(word)).replace(/%20/g, "+");
    return Object.entries(fields).map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
  }

  // a text, or an object as a form
  function body(value, headers) {
    if (typeof value === "string") return value;
    if (typeof value !== "object" || value === null) fail("the body has to be a string or an object; use JSON.stringify(...)");
    if (!headers.some(([name]) => name.toLowerCase() === "content-type")) {
      headers.push(["Content-Type", "application/x-www-form-urlencoded"]);
    }
    return form(value);
  }

  function filled(url, params) {
    for (const [name, value] of object("params", params)) url = url.split(`:${name}`).join(String(value));
    return url;
  }

  // what the response has to have
  function check(name, source) {
    const one = {};
    for (const [key, value] of object(`${name}: the parts of check`, source)) {
      if (value === undefined) continue;
      if (key === "status") one.status = given(value);
      else if (key === "contains") one.contains = text(`${name}: the text of check`, value);
      else if (key === "json") {
        const values = object(`${name}: the values of check`, value);
        const scalar = (word) => (["string", "number", "boolean"].includes(typeof word) ? word : null);
        one.json = Object.fromEntries(values.map(([path, word]) => [path, scalar(word)]));
      } else note(record.unsupported, `${key} in the check of ${name}`);
    }
    return one;
  }

  function request(name, method, url, options) {
    const one = { method, url: text(`${name}: the URL`, url), headers: [] };
    if (options === undefined || options === null) options = {};
    for (const [key, value] of object(`${name}: the options`, options)) {
      if (value === undefined) continue;
      if (key === "tag") one.tag = text(`${name}: the tag`, value);
      else if (key === "check") one.check = check(name, value);
      else if (key === "headers") {
        for (const [field, word] of object(`${name}: the headers`, value)) one.headers.push([field, String(word)]);
      } else if (key === "gzip") {
        if (value) one.headers.push(["Accept-Encoding", "gzip"]);
      } else if (key !== "body" && key !== "payload" && key !== "params") {
        note(record.unsupported, `the option ${key} of ${name}`);
      }
    }
    if (options.params !== undefined) one.url = filled(one.url, options.params);
    const content = options.body ?? options.payload;
    if (content !== undefined && content !== null) one.body = body(content, one.headers);
    add(name, { request: one });
  }

  const known = {
    wait(seconds, options) {
      if (options !== undefined) fail("wait: only the time is supported; use waitUniform(low, high) for a random one");
      add("wait", { wait: given(seconds) });
    },
    waitExp(mean) {
      add("waitExp", { "wait-exp": given(mean) });
    },
    waitUniform(low, high) {
      add("waitUniform", { "wait-uniform": [given(low), given(high)] });
    },
    times(times, define) {
      if (block === undefined) fail("times: outside of a session");
      add("times", { times: [given(times), steps("times", define)] });
    },
    forEver(define) {
      if (block === undefined) fail("forEver: outside of a session");
      add("forEver", { "for-ever": steps("forEver", define) });
    },
  };
  for (const method of ["get", "head", "post", "put", "patch", "delete", "options"]) {
    known[method] = (url, options) => request(method, method.toUpperCase(), url, options);
  }
  const context = guarded("", known);

  function target(host) {
    record.targets.push({ line: line(), value: text("the target", host) });
  }

  function phase(source) {
    const one = { duration: "undefined", rate: "undefined" };
    for (const [key, value] of object("an arrival phase", source)) {
      if (key === "duration" || key === "rate") one[key] = given(value);
      else if (key === "max_clients" || key === "max_users") one["max-clients"] = given(value);
      else if (key === "name") one.name = text("the name of a phase", value);
      else note(record.unsupported, `${key} of an arrival phase`);
    }
    return { line: line(), value: one };
  }

  function weights(name, all) {
    for (const [session, weight] of object(name, all)) {
      record.weights.push({ line: line(), value: { session, weight: given(weight) } });
    }
  }

  const definition = guarded("definition.", {
    setTarget: target,
    addTarget: target,
    setTargets(hosts) {
      if (!Array.isArray(hosts)) fail("setTargets: an array of targets is needed");
      hosts.forEach(target);
    },
    setArrivalPhases(phases) {
      if (!Array.isArray(phases)) fail("setArrivalPhases: an array of { duration, rate } is needed");
      if (phases.length === 0) fail("setArrivalPhases: a list without a phase has no arrivals; leave the call out to have -c clients all the time");
      record.phases = phases.map(phase);
    },
    setSessionWeights(all) {
      weights("the weights", all);
    },
    setSessionProbabilities(all) {
      weights("the probabilities", all);
    },
    setUserAgent(name) {
      record.user_agent = { line: line(), value: text("the user agent", name) };
    },
    setTestOptions() {
      note(record.ignored, "setTestOptions is for the machines of a service and has no effect here");
    },
    session(name, weight, define) {
      if (block !== undefined) fail("session: a session inside of another");
      const at = line();
      const one = { name: text("the name of a session", name) };
      if (define === undefined) define = weight;
      else if (weight !== undefined) one.weight = given(weight);
      one.steps = steps("session", define);
      record.sessions.push({ line: at, value: one });
    },
  });

  Object.defineProperty(global, "definition", { value: definition });
  // stands for the session that is being defined; a definition may have a variable of this name
  Object.defineProperty(global, "context", { value: context, writable: true, configurable: true });
  return () => stringify(record);
})

// A runtime client for Node without dependencies: `node runtime.cjs app.handler`. What aws-lambda-ric does for an async handler,
// where its native part cannot be built. Its own connection to the Runtime API is not the function's.
"use strict";
const http = require("node:http");
const path = require("node:path");

const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(":");
const root = "/2018-06-01/runtime/";

function ask(method, call, body) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host, port, method, agent, path: root + call }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("end", () => resolve({ head: answer.headers, body: Buffer.concat(parts).toString() }));
      answer.on("error", reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}

const told = (error) =>
  JSON.stringify({
    errorType: error.code ?? error.name,
    errorMessage: [error.message, error.cause?.code ?? error.cause?.message].filter(Boolean).join(": "),
  });

async function main() {
  const [file, name] = (process.env._HANDLER ?? process.argv[2]).split(".");
  let handler;
  try {
    const folder = process.env.LAMBDA_TASK_ROOT ?? ".";
    handler = require(path.resolve(folder, `${file}.cjs`))[name];
  } catch (error) {
    await ask("POST", "init/error", told(error));
    process.exit(1);
  }
  for (;;) {
    const event = await ask("GET", "invocation/next");
    const id = event.head["lambda-runtime-aws-request-id"];
    try {
      const answer = await handler(JSON.parse(event.body), { awsRequestId: id });
      await ask("POST", `invocation/${id}/response`, JSON.stringify(answer ?? null));
    } catch (error) {
      await ask("POST", `invocation/${id}/error`, told(error));
    }
  }
}

main();

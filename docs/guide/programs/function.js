// node function.js URL: a function for the AWS Lambda Runtime API. Its handler calls URL.
// KEEPALIVE=1: one agent for all invocations. Otherwise each invocation creates an agent.
// TIMEOUT: the idle timeout of the agent, in milliseconds.
const http = require("http");

const url = process.argv[2];
const api = `http://${process.env.AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime/invocation`;
const timeout = process.env.TIMEOUT ? Number(process.env.TIMEOUT) : undefined;
const shared = new http.Agent({ keepAlive: true, timeout });

function send(url, options, body) {
  return new Promise((resolve, reject) => {
    http
      .request(url, options, (response) => response.resume().on("end", () => resolve(response)))
      .on("error", reject)
      .end(body);
  });
}

async function handler() {
  const agent = process.env.KEEPALIVE === "1" ? shared : new http.Agent({ keepAlive: true });
  return (await send(url, { agent })).statusCode;
}

(async () => {
  for (;;) {
    const next = await send(`${api}/next`, {});
    const id = next.headers["lambda-runtime-aws-request-id"];
    try {
      await send(`${api}/${id}/response`, { method: "POST" }, JSON.stringify(await handler()));
    } catch (error) {
      await send(`${api}/${id}/error`, { method: "POST" }, JSON.stringify({ errorType: error.code, errorMessage: error.message }));
    }
  }
})();

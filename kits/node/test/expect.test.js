// The kit on real clients and `intact serve`; run by `cargo xtask kits` as `intact watch --windows -- node --test`.

import assert from "node:assert";
import http from "node:http";
import { test } from "node:test";
import { NotWatched, expect } from "intact-http-node";

const URL = process.env.INTACT_TEST_SERVER;

function get(agent) {
  return new Promise((resolve, reject) => {
    http.get(URL, { agent }, (response) => response.resume().on("end", resolve)).on("error", reject);
  });
}

async function fails(requirements, block) {
  return assert.rejects(expect(requirements, block), assert.AssertionError);
}

test("requests of one agent pass", async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const requirements = ["avoidable == 0", "connections == 1", "requests == 3"];
  const result = await expect({ require: requirements, failOn: "warning" }, async () => {
    for (let n = 0; n < 3; n++) await get(agent);
    return "of the block";
  });
  assert.equal(result, "of the block");
  agent.destroy();
});

test("requests of fetch are in the window", () => expect("requests == 1", async () => (await fetch(URL)).text()));

test("a connection for each request fails with the finding", async () => {
  const error = await expect({ require: "avoidable == 0", name: "orders" }, async () => {
    for (let n = 0; n < 4; n++) await get(false);
  }).catch((error) => error);
  assert.ok(error instanceof assert.AssertionError, String(error));
  assert.match(error.message, /intact: orders does not pass\n(.|\n)*avoidable is 3(.|\n)* at test\/expect\.test\.js:\d+ (.|\n)*->/);
});

test("a connection from before is none of the window", async () => {
  const agent = new http.Agent({ keepAlive: true });
  await get(agent);
  await expect(["connections == 0", "reuse == 100%"], () => get(agent));
  agent.destroy();
});

test("a window without traffic does not pass", () => fails("connections == 0", () => {}));

test("a second window of the process is refused", async () => {
  await assert.rejects(
    expect("connections == 1", () => expect("connections == 1", () => assert.fail("two windows are open"))),
    (error) => error instanceof NotWatched && /is open in process/.test(error.message),
  );
});

test("a block that throws is not judged", async () => {
  const block = () => Promise.reject(new TypeError("of the block"));
  await assert.rejects(expect("connections == 1", block), TypeError);
});

test("without intact the remedy is named", async () => {
  const path = process.env.INTACT_CONTROL;
  delete process.env.INTACT_CONTROL;
  await assert.rejects(expect("connections == 1", () => {}), /intact watch --windows/);
  process.env.INTACT_CONTROL = path;
});

// Tests of what the vectors do not cover: configuration, connections, mistakes in mounting.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import { after, before, test } from "node:test";
import { inspect } from "node:util";

import { identity, middleware, TokenRefused, TokenVerifier, verified, Verifier } from "../src/index.js";

const credential = "a-secret-of-this-test";
const origin = "https://api.example.com";
const service = "https://auth.example.com";
const asked = [];

/** Imitates the auth service. Accepts every request, as the device that the request names. */
const auth = http.createServer(async (request, response) => {
  let text = "";
  for await (const part of request) text += part;
  const question = JSON.parse(text);
  asked.push(question);
  const headers = Object.fromEntries(question.headers.map(([name, value]) => [name.toLowerCase(), value]));
  response.end(JSON.stringify({
    verified: true, app_id: headers["x-app-id"], device_id: headers["x-device-id"], platform: "android", signature_scheme: 1,
    assurance: { app: "play-integrity", key: "tee", labels: [] }, key_age_seconds: 1 }));
});
const servers = [auth];
let verifier;

async function listening(handler) {
  const server = http.createServer(handler).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  return server.address().port;
}

before(async () => {
  auth.listen(0, "127.0.0.1");
  await once(auth, "listening");
  verifier = new Verifier({ service: `http://127.0.0.1:${auth.address().port}`, credential, origin, timeout: 20_000 });
});

after(() => servers.forEach((server) => server.close().closeAllConnections()));

const signed = (device = randomUUID()) => ({ "X-App-ID": "com.example.app", "X-Device-ID": device });

test("a wrong option is refused, and the error does not show the credential", () => {
  const good = { service, credential, origin };
  const refuses = (options) => assert.throws(() => new Verifier({ ...good, ...options }), (error) =>
    error instanceof TypeError && !error.message.includes(credential), inspect(options));
  for (const wrong of ["auth.example.com", "ftp://a", "https://", `${service}/auth`, `${service}?x`, "https://a@b", "http://a", 1]) {
    refuses({ service: wrong });
  }
  for (const wrong of ["", "a\nb", "a b", "\u00e9", undefined]) refuses({ credential: wrong });
  for (const wrong of ["api.example.com", `${origin}/`, "https://a@b", "wss://a", "https://a b", `${origin}\n`]) refuses({ origin: wrong });
  refuses({ origin: undefined });
  refuses({ trustedProxies: ["10.0.0.0/8"] });
  for (const wrong of ["*", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8/8", "proxy"]) refuses({ origin: undefined, trustedProxies: [wrong] });
  for (const wrong of [{ attempts: 0 }, { bodyLimit: -1 }, { timeout: 0 }, { bodyLimit: NaN }]) refuses(wrong);
  for (const log of [null, {}, { warn() {} }, { warn() {}, error: "x" }]) {
    refuses({ log });
    assert.throws(() => new TokenVerifier({ issuer: service, audience: "a", log }), TypeError);
  }
  assert.throws(() => new TokenVerifier({ issuer: service, audience: "" }), TypeError);
  assert.throws(() => new TokenVerifier({ issuer: "synheart-auth", audience: "a" }), TypeError);
  assert.throws(() => new TokenVerifier({ issuer: service, audience: "a", leeway: 61 }), TypeError);
});

test("plain http is for loopback unless it is allowed", () => {
  for (const local of ["http://127.0.0.1:8080", "http://[::1]:8080", "http://localhost"]) new Verifier({ service: local, credential, origin });
  new Verifier({ service: "http://auth:8080", credential, origin, insecureHTTP: true });
});

test("the credential is not shown", () => {
  const found = new Verifier({ service, credential, origin });
  assert.ok(!(inspect(found, { depth: 9, showHidden: true }) + JSON.stringify(found) + String(found)).includes(credential));
});

test("an app that answers first, such as after a time limit, is not disturbed, and nothing runs", async () => {
  const strict = new Verifier({ service: `http://127.0.0.1:${auth.address().port}`, credential, origin, bodyLimit: 1 });
  for (const [handle, body] of [[middleware(verifier), "a"], [middleware(strict), "over the limit"]]) {
    let ran = 0;
    const port = await listening((request, response) => {
      response.writeHead(503).end("too slow");
      handle(request, response, () => { ran += 1; });
    });
    const before = asked.length;
    const { status } = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body, headers: signed() });
    assert.equal(status, 503);
    // The verdict has come, or none is needed.
    while (body === "a" && asked.length === before) await new Promise(setImmediate);
    for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate);
    assert.equal(ran, 0);
  }
});

test("peers of trusted proxies", async () => {
  const headers = Object.entries({ ...signed(), "X-Forwarded-Proto": "https", "X-Forwarded-Host": "api.example.com" });
  const trusting = new Verifier({
    service: `http://127.0.0.1:${auth.address().port}`, credential, trustedProxies: ["10.0.0.0/8", "fd00::/8", "unix"] });
  for (const [peer, status] of [["10.1.2.3"], ["::ffff:10.1.2.3"], ["fd00::1"], [""], [undefined, 421], [null, 421], ["11.1.2.3", 421], ["::1", 421],
    ["10.1.2.3, 1.2.3.4", 421], ["x", 421]]) {
    const found = await trusting.verify({ method: "GET", target: "/", headers, body: new Uint8Array(), peer });
    assert.equal(found.refusal?.status, status, peer);
  }
});

test("each concurrent request gets its own answer", async () => {
  const devices = Array.from({ length: 200 }, () => randomUUID());
  const found = await Promise.all(devices.map((device) =>
    verifier.verify({ method: "GET", target: "/", headers: Object.entries(signed(device)), body: new Uint8Array() })));
  assert.deepEqual(found.map(({ identity: { deviceID } }) => deviceID), devices);
  assert.equal(new Set(asked.map((question) => question.verification_id)).size, asked.length);
});

test("a handler that does not read the body leaves the connection in order", async () => {
  const handle = middleware(verifier);
  const port = await listening((request, response) => handle(request, response, () => response.end(identity(request).deviceID)));
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  for (let index = 0; index < 5; index++) {
    const device = randomUUID();
    const request = http.request({ port, agent, method: "POST", headers: signed(device) }).end("x".repeat(100_000));
    const [response] = await once(request, "response");
    let text = "";
    for await (const part of response) text += part;
    assert.equal(text, device);
    assert.equal(request.reusedSocket, index > 0);
  }
  agent.destroy();
});

test("a body that another handler read first is refused", async () => {
  const errors = [];
  const log = { warn() {}, error: (text) => errors.push(text) };
  const handle = middleware(new Verifier({ service, credential, origin, log }));
  const port = await listening(async (request, response) => {
    for await (const part of request) assert.ok(part);
    handle(request, response, () => response.end("passed"));
  });
  const response = await fetch(`http://127.0.0.1:${port}`, { method: "POST", body: "x" });
  assert.equal(response.status, 503);
  assert.equal(errors.length, 1);
});

test("an error of the library itself is a refusal, not an error that a handler may ignore", async () => {
  const errors = [];
  const broken = new Verifier({ service, credential, origin, log: { warn() {}, error: (text) => errors.push(text) } });
  broken.verify = async () => { throw new Error("of the library"); };
  const port = await listening((request, response) => middleware(broken)(request, response, () => response.end("passed")));
  const response = await fetch(`http://127.0.0.1:${port}`, { headers: signed() });
  assert.equal(response.status, 503);
  assert.match(errors.join(), /of the library/);
});

test("the README's token sample refuses a request without a token", async () => {
  const page = await readFile(new URL("../README.md", import.meta.url), "utf8");
  const [, sample] = /## Device tokens\n\n```js\n(.*?)```/s.exec(page);
  const run = new (async () => {}).constructor("TokenVerifier", "request", sample);
  await assert.rejects(run(TokenVerifier, { headers: {} }), TokenRefused);
});

test("a mounted router does not change what is asked about", async () => {
  const handle = middleware(verifier);
  const port = await listening((request, response) => {
    request.originalUrl = request.url;
    request.url = "/below";
    handle(request, response, () => response.end());
  });
  await (await fetch(`http://127.0.0.1:${port}/v1/below?a`, { headers: signed() })).text();
  assert.deepEqual([asked.at(-1).path, asked.at(-1).query], ["/v1/below", "a"]);
});

test("a client that leaves while it sends is not asked about", async () => {
  const before = asked.length;
  const handle = middleware(verifier);
  let close;
  const gone = new Promise((resolve) => (close = resolve));
  const port = await listening((request, response) => {
    request.on("close", close);
    handle(request, response, () => assert.fail("passed"));
  });
  const socket = net.connect(port, "127.0.0.1");
  socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  await once(socket, "connect");
  setTimeout(() => socket.destroy(), 50);
  await gone;
  assert.equal(asked.length, before);
});

test("a fetch-style handler takes the target that a server has", async () => {
  const handle = verified(verifier, (request, found) => Response.json({ url: request.url, device: found.identity.deviceID }),
    { target: (_, raw) => raw });
  const response = await handle(new Request("http://a/a/../b", { headers: signed() }), "/a/../b");
  assert.equal((await response.json()).url, "http://a/b");
  assert.equal(asked.at(-1).path, "/a/../b");
});

test("a handler that throws runs once", () => {
  const script = `
    import { middleware, Verifier } from "./src/index.js";
    let calls = 0;
    const verifier = new Verifier({ service: "http://127.0.0.1", credential: "c", origin: "https://a" });
    verifier.verify = async () => ({ identity: undefined, observed: "X" });
    process.on("unhandledRejection", () => setImmediate(() => console.log(calls)));
    middleware(verifier)({ rawHeaders: [], headers: {}, httpVersionMajor: 1, socket: {} }, {}, () => { calls += 1; throw new Error(); });`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], { cwd: new URL("..", import.meta.url) });
  assert.equal(String(stdout), "1\n");
});

test("HTTP/2 is refused, because nothing tells whether there is a body", async () => {
  const server = http2.createServer((request, response) => middleware(new Verifier({
    service, credential, origin, log: { warn() {}, error() {} } }))(request, response, (error) => response.end(String(error))));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = http2.connect(`http://127.0.0.1:${server.address().port}`);
  const stream = session.request({ ":method": "POST", ":path": "/", ...signed() }).end("foreign body");
  const [headers] = await once(stream, "response");
  stream.resume();
  await once(stream, "close");
  session.close();
  server.close();
  assert.equal(headers[":status"], 503);
});

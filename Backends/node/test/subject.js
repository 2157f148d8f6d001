// The server that `testing/drive.py` drives: subject.js http|express|fetch.

import http from "node:http";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

import { KeysUnavailable, middleware, TokenRefused, TokenVerifier, verification, Verifier, verified } from "../src/index.js";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const start = JSON.parse((await lines.next()).value);
const verifiers = Object.fromEntries(Object.entries(start.instances).map(([name, options]) => [name, new Verifier({
  service: start.service, credential: start.credential, origin: options.origin, trustedProxies: options.trusted_proxies,
  bodyLimit: options.body_limit, attempts: options.attempts, timeout: name === "quick" ? start.quick_timeout * 1000 : 20_000,
  log: { warn: console.error, error: console.error },
})]));

function answer(found, body, names) {
  const { appID, deviceID, platform, assurance, signatureScheme, keyAgeSeconds } = found.identity ?? {};
  return JSON.stringify({
    identity: found.identity ? { app_id: appID, device_id: deviceID, platform, assurance, signature_scheme: signatureScheme,
      key_age_seconds: keyAgeSeconds } : null,
    observed: found.observed ?? null, body: Buffer.from(body).toString("base64"),
    reserved: names.filter((name) => /verified|identity/i.test(name)),
  });
}

const names = (request) => [...request.rawHeaders, ...Object.keys(request.headers), ...Object.keys(request.headersDistinct)];
const instance = (host) => host.split(".")[0];

async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
}

function plain() {
  const handlers = Object.fromEntries(Object.entries(verifiers).map(([name, verifier]) => [name, middleware(verifier)]));
  return (request, response) => {
    const name = instance(request.headers.host);
    const app = () => bodyOf(request).then(
      (body) => response.end(answer(verification(request), body, names(request))),
      // The client closed the connection.
      () => response.destroy());
    handlers[name](request, response, () => (name === "twice" ? handlers[name](request, response, app) : app()));
  };
}

function express() {
  const make = createRequire(import.meta.url)("express");
  const apps = Object.fromEntries(Object.entries(verifiers).map(([name, verifier]) => {
    const app = make();
    const router = make.Router();
    if (name === "twice") router.use(middleware(verifier));
    router.use(make.raw({ type: (request) => !request.headers["content-encoding"] }));
    router.use(async (request, response) => response.end(answer(
      verification(request), Buffer.isBuffer(request.body) ? request.body : await bodyOf(request), names(request))));
    app.use(middleware(verifier), router);
    return [name, app];
  }));
  return (request, response) => apps[instance(request.headers.host)](request, response);
}

function fetchStyle() {
  const handle = async (request, found) => new Response(answer(found, await request.arrayBuffer(), [...request.headers.keys()]));
  const handlers = Object.fromEntries(Object.entries(verifiers).map(([name, verifier]) => {
    const options = { peer: (_, socket) => socket.remoteAddress };
    const inner = name === "twice" ? verified(verifier, handle, options) : handle;
    return [name, verified(verifier, (request, found, socket) => (name === "twice" ? inner(request, socket) : handle(request, found)), options)];
  }));
  const serve = async (request, response) => {
    const headers = new Headers();
    for (let index = 0; index < request.rawHeaders.length; index += 2) {
      headers.append(request.rawHeaders[index], request.rawHeaders[index + 1]);
    }
    const hasBody = !["GET", "HEAD"].includes(request.method);
    const found = await handlers[instance(request.headers.host)](new Request(new URL(`http://${request.headers.host}${request.url}`), {
      method: request.method, headers, ...(hasBody ? { body: request, duplex: "half" } : {}) }), request.socket);
    response.writeHead(found.status, [...found.headers].flat());
    response.end(Buffer.from(await found.arrayBuffer()));
  };
  // The client closed the connection.
  return (request, response) => serve(request, response).catch(() => response.destroy());
}

const handler = { http: plain, express, fetch: fetchStyle }[process.argv[2] ?? "http"]();
const server = http.createServer(handler).listen(0, "127.0.0.1", async () => {
  console.log(JSON.stringify({ port: server.address().port }));
  let tokens, now, monotonic;
  for await (const line of lines) {
    const question = JSON.parse(line);
    if (question.do === "verifier") {
      tokens = new TokenVerifier({
        issuer: question.issuer, audience: question.audience, jwksURL: question.jwks_url, tokenType: question.token_type,
        channels: question.channels, leeway: question.leeway, timeout: 20_000, clock: () => now, monotonic: () => monotonic,
        log: { warn: console.error, error: console.error },
      });
      console.log("{}");
      continue;
    }
    ({ now, monotonic } = question);
    try {
      const token = await tokens.verify(question.token);
      console.log(JSON.stringify({ outcome: "valid", device_id: token.deviceID, app_id: token.appID, channel: token.channel,
        platform: token.platform, assurance: token.assurance, expires_at: token.expiresAt }));
    } catch (error) {
      if (!(error instanceof TokenRefused || error instanceof KeysUnavailable)) throw error;
      console.log(JSON.stringify({ outcome: error instanceof TokenRefused ? "refused" : "unavailable" }));
    }
  }
  process.exit();
});

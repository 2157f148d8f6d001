// The verifier in front of Express-style and fetch-style handlers.

import { isReserved, separated } from "./verifier.js";

/** The result for each request object. It is kept outside of the request, so that no header can forge it. */
const found = new WeakMap();

/** The result for a request: `identity` and `observed`; undefined for a request that no handler of this library judged. */
export function verification(request) {
  return found.get(request);
}

/** The device that signed the request; undefined for a request that passes only because its app is in observe mode. */
export function identity(request) {
  return found.get(request)?.identity;
}

/** An Express-style handler. Mount it before every parser of bodies. */
export function middleware(verifier) {
  return (request, response, next) => {
    // Outside Express, `next(error)` runs the next handler. So the middleware answers an error of this library with a refusal.
    verifyIncoming(verifier, request).catch((error) => verifier.impossible(`an error of the library: ${error?.stack}`)).then((result) => {
      // The app may have answered meanwhile, such as after a time limit. Then nothing runs, and the answer stays as it is.
      if (result === undefined || response.headersSent || response.destroyed) return;
      // `next` is called after the `catch`, which must not catch the errors of later handlers.
      if (!result.refusal) return next();
      const { status, headers, body } = result.refusal;
      response.writeHead(status, headers);
      response.end(request.method === "HEAD" ? undefined : body);
    });
  };
}

/** The address of the peer; "" for a UNIX socket; undefined if it is not known, such as after the client disconnected. */
function peerOf({ remoteAddress, server }) {
  return remoteAddress ?? (typeof server?.address?.() === "string" ? "" : undefined);
}

async function verifyIncoming(verifier, request) {
  const peer = peerOf(request.socket);
  // HTTP/2 does not tell before the end of the stream whether there is a body.
  if (request.httpVersionMajor !== 1) return verifier.impossible("this handler is for HTTP/1: let a proxy end HTTP/2");
  const lines = [];
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    lines.push([request.rawHeaders[index], request.rawHeaders[index + 1]]);
  }
  for (const headers of [request.headers, request.headersDistinct ?? {}]) {
    for (const name of Object.keys(headers)) if (isReserved(name)) delete headers[name];
  }
  request.rawHeaders = lines.filter(([name]) => !isReserved(name)).flat();
  if (found.has(request)) return found.get(request);
  const hasBody = lines.some(([name, value]) => /^transfer-encoding$/i.test(name) || (/^content-length$/i.test(name) && value !== "0"));
  if (hasBody && (request.readableDidRead || request.body !== undefined)) {
    return verifier.impossible("the body was read before it was verified: mount this handler first");
  }
  const body = hasBody ? await read(request, verifier.bodyLimit) : new Uint8Array();
  if (body === undefined) return undefined;
  if (body === null) return verifier.tooLarge();
  const result = await verifier.verify({
    // A router that is mounted below a path changes `url`.
    method: request.method, target: request.originalUrl ?? request.url, headers: lines, body, peer,
  });
  if (result.refusal) return result;
  found.set(request, result);
  // The stream of an empty chunked body has ended by now. With this header, a body parser would wait for the stream to end.
  if (body.length === 0) delete request.headers["transfer-encoding"];
  return result;
}

/**
 * The whole body, which is put back for the next reader. Null if it is over the limit, undefined if the client
 * disconnected.
 *
 * The body must be put back before the stream ends. A `read` that returns null would end the stream, so this function
 * reads only buffered bytes. `request.complete` tells whether the body is whole.
 */
function read(request, limit) {
  return new Promise((resolve) => {
    const parts = [];
    let size = 0;
    const done = (result) => {
      request.off("readable", more).off("close", left).off("error", left);
      resolve(result);
    };
    const left = () => done(undefined);
    const more = () => {
      while (request.readableLength > 0) {
        const part = request.read();
        if (part === null) break;
        parts.push(part);
        size += part.length;
        if (size > limit) {
          // Discards the rest of the body.
          done(null);
          request.resume();
          return;
        }
      }
      if (!request.complete || request.readableLength > 0) return;
      const body = Buffer.concat(parts);
      done(body);
      if (size > 0) request.unshift(body);
    };
    request.on("readable", more).on("close", left).on("error", left);
    more();
  });
}

/**
 * Wraps a fetch-style handler, which is called with the request and the result.
 *
 * `target` returns the request target as it came over the wire, if the server has it. The default takes the target from
 * the URL of the `Request`, which is normalized. `peer` returns the peer's address, for trusted proxies: "" for a UNIX socket.
 */
export function verified(verifier, handler, { target = targetOf, peer } = {}) {
  return async (request, ...more) => {
    if (found.has(request)) return handler(request, found.get(request), ...more);
    const headers = [...request.headers];
    const body = await readWeb(request, verifier.bodyLimit);
    const result = body === null ? verifier.tooLarge() : await verifier.verify({
      method: request.method, target: target(request, ...more), headers: separated(headers), body, peer: peer?.(request, ...more),
    });
    if (result.refusal) {
      const { status, headers: fields, body: text } = result.refusal;
      return new Response(request.method === "HEAD" ? null : text, { status, headers: fields });
    }
    const kept = headers.filter(([name]) => !isReserved(name));
    const passed = new Request(request, { headers: kept, ...(request.body ? { body } : {}) });
    found.set(passed, result);
    return handler(passed, result, ...more);
  };
}

function targetOf(request) {
  const start = request.url.indexOf("/", request.url.indexOf("//") + 2);
  return start < 0 ? "/" : request.url.slice(start);
}

async function readWeb(request, limit) {
  const parts = [];
  let size = 0;
  for await (const part of request.body ?? []) {
    size += part.length;
    if (size > limit) return null;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

// Servers that serve `/v1/pay` and `/v1/pay/:id`: some with Node's own functions that parse a target, some with
// Express. Prints their ports.
const http = require("node:http");
const url = require("node:url");
const express = require("express");

const isPay = (path) => /^\/v1\/pay(\/[^/]+)?$/.test(path);
const plain = (pathOf) => (request, response) => {
    let found = false;
    try {
        found = isPay(pathOf(request.url));
    } catch {}
    response.writeHead(found ? 200 : 404).end(found ? "pay" : "");
};
const app = express();
app.get(["/v1/pay", "/v1/pay/:id"], (request, response) => response.send("pay"));
app.use((error, request, response, next) => response.status(400).end());
const strict = express();
strict.use("/v1", express.Router({ strict: true, caseSensitive: true }).get(["/pay", "/pay/:id"], (_, response) => response.send("pay")));
strict.use((error, request, response, next) => response.status(400).end());

const handlers = {
    "node, new URL": plain((target) => new URL(target, "http://localhost").pathname),
    "node, new URL, decoded": plain((target) => decodeURIComponent(new URL(target, "http://localhost").pathname)),
    "node, url.parse": plain((target) => url.parse(target).pathname),
    "node, url.parse of //": plain((target) => url.parse(target, false, true).pathname),
    "express": app,
    "express, a strict router": strict,
};
const servers = Object.entries(handlers).map(([name, handler]) => {
    const server = http.createServer(handler).listen(0, "127.0.0.1", () => {
        console.log(`${server.address().port} ${name}`);
    });
    return server;
});
process.stdin.on("end", () => process.exit(0)).resume();

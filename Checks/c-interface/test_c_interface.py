"""Exercises the C interface through ctypes: the SDK's and the runtime's functions, bad arguments, and a host with keys and attestation.

    swift build --product SynheartAuthC
    python3 Checks/c-interface/test_c_interface.py .build/debug/libSynheartAuthC.so
"""
import base64
import ctypes as c
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import stand_in_service
from stand_in_service import StandInService

state = tempfile.mkdtemp()
os.environ["XDG_STATE_HOME"] = state
lib = c.CDLL(os.path.abspath(sys.argv.pop(1)))
libc = c.CDLL(None)
APP = b"com.example.app"
SPKI = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")
u8, i64 = c.POINTER(c.c_uint8), c.c_int64


def text(pointer, free=libc.free):
    if not pointer:
        return None
    value = c.string_at(pointer).decode()
    free(c.c_void_p(pointer))
    return value


for name in ["generate_key", "sign_bytes", "get_attestation", "secure_load"]:
    getattr(lib, "synheart_native_" + name).restype = c.c_void_p
lib.synheart_native_sign_bytes.argtypes = [c.c_char_p, c.c_char_p, c.c_ssize_t]
lib.synheart_native_get_attestation.argtypes = [c.c_char_p, c.c_char_p, c.c_ssize_t]


def unb64(value):
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))


def point(device):
    key = json.loads(text(lib.synheart_native_generate_key(device)))
    return b"\x04" + unb64(key["x"]) + unb64(key["y"])


def der(raw):
    def integer(value):
        value = value.lstrip(b"\0") or b"\0"
        value = (b"\0" if value[0] & 0x80 else b"") + value
        return b"\x02" + bytes([len(value)]) + value

    body = integer(raw[:32]) + integer(raw[32:])
    return b"\x30" + bytes([len(body)]) + body


def verifies(key, signature, message):
    with tempfile.TemporaryDirectory() as directory:
        for name, value in [("k", SPKI + key), ("s", signature), ("m", message)]:
            with open(f"{directory}/{name}", "wb") as file:
                file.write(value)
        command = ["openssl", "dgst", "-sha256", "-keyform", "DER", "-verify", "k", "-signature", "s", "m"]
        return subprocess.run(command, cwd=directory, capture_output=True).returncode == 0


def run(functions):
    """Runs the functions concurrently, each on a separate thread."""
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def start_together(processes):
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    return processes


class NativeFace(unittest.TestCase):
    def test_generate_is_load_or_create(self):
        self.assertEqual(point(b"one"), point(b"one"))
        self.assertNotEqual(point(b"one"), point(b"two"))

    def test_sign_hashes_once(self):
        raw = unb64(text(lib.synheart_native_sign_bytes(b"one", b"a\0b", 3)))
        self.assertEqual(len(raw), 64)
        self.assertTrue(verifies(point(b"one"), der(raw), b"a\0b"))

    def test_exists_and_delete(self):
        point(b"three")
        self.assertEqual(lib.synheart_native_key_exists(b"three"), 1)
        self.assertEqual(lib.synheart_native_delete_key(b"three"), 0)
        self.assertEqual(lib.synheart_native_key_exists(b"three"), 0)
        self.assertIsNone(text(lib.synheart_native_sign_bytes(b"three", b"", 0)))
        self.assertEqual(lib.synheart_native_delete_key(b"three"), 0)

    def test_a_key_that_cannot_be_read_still_exists(self):
        point(b"damaged")
        [file] = [f"{folder}/{name}" for folder, _, names in os.walk(state) for name in names
                  if name == hashlib.sha256(b"synheart_device_damaged").hexdigest() + ".key"]
        os.truncate(file, 7)
        self.assertEqual(lib.synheart_native_key_exists(b"damaged"), 1)
        self.assertIsNone(lib.synheart_native_generate_key(b"damaged"))
        self.assertEqual(lib.synheart_native_delete_key(b"damaged"), 0)
        self.assertEqual(lib.synheart_native_key_exists(b"damaged"), 0)

    def test_threads_that_generate_at_once_get_the_key_that_is_stored(self):
        for number in range(30):
            device, keys, barrier = f"threads-{number}".encode(), [], threading.Barrier(8)

            def generate():
                barrier.wait()
                keys.append(point(device))

            run([generate] * 8)
            self.assertEqual(set(keys), {point(device)})
            self.assertEqual(len(keys), 8)

    def test_processes_that_generate_at_once_get_the_key_that_is_stored(self):
        program = ("import ctypes, sys; lib = ctypes.CDLL(sys.argv[1]); f = lib.synheart_native_generate_key; "
                   "f.restype = ctypes.c_char_p; print('ready', flush=True); sys.stdin.readline()\n"
                   "for i in range(20): print(f(f'processes-{i}'.encode()).decode())")
        processes = [subprocess.Popen([sys.executable, "-c", program, lib._name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True) for _ in range(3)]
        for process in processes:
            process.stdout.readline()
        answers = [process.communicate(timeout=60)[0] for process in start_together(processes)]
        self.assertEqual(len(answers[0].splitlines()), 20)
        self.assertEqual(len(set(answers)), 1)
        for number, line in enumerate(answers[0].splitlines()):
            self.assertEqual(json.loads(line), json.loads(text(lib.synheart_native_generate_key(f"processes-{number}".encode()))))

    def test_deleting_never_takes_a_concurrent_store_s_file_away(self):
        failures, is_over = [], threading.Event()

        def store():
            for number in range(200):
                if lib.synheart_native_secure_store(b"busy", b"key", b"v" * 50_000) != 0:
                    failures.append(number)

        def stores():
            run([store] * 2)
            is_over.set()

        def delete():
            while not is_over.is_set():
                if lib.synheart_native_secure_delete(b"busy", b"key") != 0:
                    failures.append("delete")

        run([stores, delete])
        self.assertEqual(failures, [])

    def test_attestation_says_none_with_a_reason(self):
        point(b"one")
        for length in [0, 31, 32, 33]:
            answer = json.loads(text(lib.synheart_native_get_attestation(b"one", b"h" * 64, length)))
            self.assertEqual((answer["format"], answer["blob"]), ("none", ""))
            self.assertTrue(answer["reason"])

    def test_secrets(self):
        self.assertEqual(lib.synheart_native_secure_store(b"s", b"k", "wert ü".encode()), 0)
        self.assertEqual(text(lib.synheart_native_secure_load(b"s", b"k")), "wert ü")
        self.assertIsNone(text(lib.synheart_native_secure_load(b"sk", b"")))
        for _ in range(2):
            self.assertEqual(lib.synheart_native_secure_delete(b"s", b"k"), 0)
            self.assertIsNone(text(lib.synheart_native_secure_load(b"s", b"k")))

    def test_null_and_garbage(self):
        self.assertIsNone(lib.synheart_native_generate_key(None))
        self.assertIsNone(lib.synheart_native_generate_key(b""))
        self.assertIsNone(lib.synheart_native_generate_key(b"\xff\xfe"))
        self.assertIsNone(lib.synheart_native_sign_bytes(b"one", None, 5))
        self.assertIsNone(lib.synheart_native_sign_bytes(b"one", b"x", -1))
        self.assertNotEqual(lib.synheart_native_secure_store(None, None, None), 0)
        self.assertNotEqual(lib.synheart_native_secure_delete(None, None), 0)
        self.assertNotEqual(lib.synheart_native_delete_key(None), 0)
        self.assertEqual(lib.synheart_native_key_exists(None), 0)

    def test_table_in_the_runtime_s_order(self):
        lib.synheart_native_callback_table.restype = c.POINTER(c.c_void_p * 5)
        table = lib.synheart_native_callback_table().contents
        names = ["generate_key", "sign_bytes", "get_attestation", "key_exists", "delete_key"]
        for pointer, name in zip(table, names):
            self.assertEqual(pointer, c.cast(getattr(lib, "synheart_native_" + name), c.c_void_p).value)


callback = c.CFUNCTYPE
create_t = callback(c.c_int32, c.c_void_p, c.c_char_p, u8, i64, u8, i64, c.POINTER(i64))
load_t = callback(c.c_int32, c.c_void_p, c.c_char_p, u8, i64, c.POINTER(i64))
delete_t = callback(c.c_int32, c.c_void_p, c.c_char_p)
attest_t = callback(c.c_int32, c.c_void_p, c.c_char_p, u8, i64, u8, u8, i64, c.POINTER(i64))
write_t = callback(c.c_int32, c.c_void_p, c.c_char_p, u8, i64)
release_t = callback(None, c.c_void_p)


class Host(c.Structure):
    _fields_ = [("version", c.c_uint32), ("size", c.c_uint32), ("user", c.c_void_p), ("create_key", create_t), ("load_key", load_t), ("sign", create_t),
                ("delete_key", delete_t), ("attest", attest_t), ("read_record", load_t), ("write_record", write_t),
                ("remove_record", delete_t), ("release", release_t)]


def put(value, out, capacity, length):
    if len(value) > capacity:
        return 6
    c.memmove(out, value, len(value))
    length[0] = len(value)
    return 0


# The callbacks of a host whose key store is the runtime's interface (synheart_native_…). If `lost` is true, no key can sign.
lost = False


def create(user, alias, challenge, challenge_length, out, capacity, length):
    lib.synheart_native_delete_key(alias)
    return put(point(alias), out, capacity, length)


def load(user, alias, out, capacity, length):
    if not lib.synheart_native_key_exists(alias):
        return 1
    return put(point(alias), out, capacity, length)


def sign(user, alias, message, message_length, out, capacity, length):
    if lost:
        return 2
    raw = text(lib.synheart_native_sign_bytes(alias, c.string_at(message, message_length), message_length))
    return put(der(unb64(raw)), out, capacity, length) if raw else 1


def attest(user, alias, challenge, challenge_length, nonce, out, capacity, length):
    token = base64.urlsafe_b64encode(c.string_at(nonce, 32)).rstrip(b"=").decode()
    return put(json.dumps({"proof": token}).encode(), out, capacity, length)


host = Host(1, c.sizeof(Host), None, create_t(create), load_t(load), create_t(sign),
            delete_t(lambda user, alias: 6 if lib.synheart_native_delete_key(alias) else 0), attest_t(attest))


class HostFace(unittest.TestCase):
    def setUp(self):
        self.server = stand_in_service.start()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}".encode()
        self.directory = tempfile.mkdtemp().encode()
        self.handle = c.c_void_p()

    def tearDown(self):
        lib.synheart_auth_free(self.handle)
        self.server.shutdown()
        self.server.server_close()

    def call(self, name, *arguments, handle=True):
        result = c.c_void_p()
        first = [self.handle] if handle else []
        status = getattr(lib, "synheart_auth_" + name)(*first, *arguments, c.byref(result))
        return status, json.loads(text(result.value, lib.synheart_auth_string_free))

    def create(self, url=None, host=host):
        return self.call("create", url or self.url, self.directory, c.byref(host) if host else None,
                         c.byref(self.handle), handle=False)

    def test_whole_life(self):
        global lost
        self.assertEqual(self.create(), (0, {}))
        self.assertEqual(self.call("is_registered", APP), (0, {"registered": False}))
        self.assertEqual(self.call("register_device", APP), (0, {"status": "registered", "device_id": StandInService.device}))
        body = StandInService.registered[-1]
        nonce = hashlib.sha256(base64.b64decode(body["challenge"]) + body["public_key"].encode()).digest()
        self.assertEqual(body["platform"], "android")
        self.assertEqual(unb64(body["proof"]), nonce)
        self.assertEqual(self.call("register_device", APP)[1]["status"], "alreadyRegistered")
        self.assertEqual(self.call("get_device_id", APP)[1], {"device_id": StandInService.device})
        data = b'{"a":1}'
        status, answer = self.call("sign_request", APP, b"POST", b"/v1/hsi", data, i64(len(data)))
        headers = answer["headers"]
        message = f"POST\n/v1/hsi\n{headers['X-Synheart-Timestamp']}\n".encode() + data
        key = base64.b64decode(body["public_key"])[len(SPKI):]
        self.assertTrue(verifies(key, base64.b64decode(headers["X-Synheart-Signature"]), message))
        self.assertEqual(self.call("device_token", APP, None)[1]["token"], "token")
        self.assertEqual(self.call("maintain", APP), (0, {}))
        lost = True
        status, error = self.call("sign_request", APP, b"GET", b"/", None, i64(0))
        lost = False
        self.assertEqual((status, error["code"], error["recovery"]), (5, "KEY_INVALIDATED", "register"))
        self.assertEqual(self.call("get_state", APP)[1], {"state": "keyInvalid"})
        self.assertEqual(self.call("reset_device_identity", APP, b"key_lost"), (0, {}))
        self.assertEqual(self.call("get_device_id", APP)[1], {"device_id": None})

    def send(self, name, *arguments, **fields):
        """Calls `synheart_auth_NAME` with a request of these fields. Returns the status, the JSON, and for `send` the answer's body."""
        request = Request(**fields)
        body, length = c.c_void_p(), i64(-1)
        beside = [c.byref(body), c.byref(length)] if name == "send" else []
        result = c.c_void_p()
        status = getattr(lib, "synheart_auth_" + name)(self.handle, APP, c.byref(request), c.byref(result), *beside)
        data = c.string_at(body.value, length.value) if body.value else b""
        lib.synheart_auth_bytes_free(body)
        return status, json.loads(text(result.value, lib.synheart_auth_string_free)), data

    def registered(self):
        self.assertEqual(self.create(), (0, {}))
        self.assertEqual(self.call("register_device", APP)[0], 0)
        return base64.b64decode(StandInService.registered[-1]["public_key"])[len(SPKI):]

    def test_send_signs_what_it_sends(self):
        key = self.registered()
        data = bytes(range(256))
        status, answer, body = self.send(
            "send", method=b"POST", url=self.url + b"/v1/hsi/207?a=1", headers=b'{"X-Mine":"1"}', body=data, body_length=256)
        self.assertEqual((status, answer["status"], body), (0, 207, data))
        self.assertIn("X-Synheart-Server-Time", [header["name"] for header in answer["headers"]])
        method, path, headers, received = StandInService.received[-1]
        self.assertEqual((method, path, headers["X-Mine"], received), ("POST", "/v1/hsi/207?a=1", "1", data))
        message = f"POST\n/v1/hsi/207\n{headers['X-Synheart-Timestamp']}\n".encode() + data
        self.assertTrue(verifies(key, base64.b64decode(headers["X-Synheart-Signature"]), message))

    def test_scheme_two_as_rfc_9421_says(self):
        key = self.registered()
        self.assertEqual(self.send("send", scheme=2, method=b"GET", url=self.url + b"/v1/hsi")[0], 8)
        self.assertEqual(self.call("use_scheme", c.c_int32(2)), (0, {}))
        status, _, body = self.send("send", scheme=2, method=b"POST", url=self.url + b"/v1/hsi?a=1", body=b"{}", body_length=2)
        self.assertEqual((status, body), (0, b"{}"))
        _, _, headers, _ = StandInService.received[-1]
        self.assertTrue(verifies_rfc_9421(key, "POST", self.url.decode(), "/v1/hsi", "a=1", headers, b"{}"))
        self.assertFalse(verifies_rfc_9421(key, "POST", self.url.decode(), "/v1/hsi", "a=2", headers, b"{}"))
        status, answer, _ = self.send("sign", scheme=2, method=b"GET", url=self.url + b"/v1/hsi?b=2")
        self.assertEqual(status, 0)
        self.assertTrue(verifies_rfc_9421(key, "GET", self.url.decode(), "/v1/hsi", "b=2", answer["headers"], b""))

    def test_send_recovers_once(self):
        self.registered()
        status, answer, body = self.send("send", method=b"GET", url=self.url + b"/v1/replay/once")
        self.assertEqual((status, answer["status"], body), (0, 200, b""))
        nonces = [r[2]["X-Synheart-Nonce"] for r in StandInService.received if r[1] == "/v1/replay/once"]
        self.assertEqual(len(set(nonces)), 2)
        # NONCE_REPLAY means that the service has already accepted a copy of the POST. So the SDK must not send the POST
        # again, because that could have a second effect.
        status, error, _ = self.send("send", method=b"POST", url=self.url + b"/v1/replay/write", body=b"x", body_length=1)
        self.assertEqual((status, error["code"], error["may_have_happened"]), (12, "NONCE_REPLAY", True))
        self.assertEqual(len([r for r in StandInService.received if r[1] == "/v1/replay/write"]), 1)
        status, answer, _ = self.send("send", method=b"POST", url=self.url + b"/v1/replay/keyed", body=b"x", body_length=1,
                                      headers=b'{"Idempotency-Key":"1"}')
        self.assertEqual((status, answer["status"]), (0, 200))

    def test_a_send_ends_by_its_deadline_whatever_it_waits_for(self):
        self.registered()
        StandInService.rotates = False
        self.addCleanup(setattr, StandInService, "rotates", True)
        start = time.monotonic()
        # The deadline is long enough for the first request on a busy machine. The rotation after that request never succeeds.
        status, error, _ = self.send("send", method=b"GET", url=self.url + b"/v1/expired", deadline_ms=4000)
        self.assertEqual((status, error["code"], error["retryable"]), (1, "NETWORK_ERROR", True))
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(len([request for request in StandInService.received if request[1] == "/v1/expired"]), 1)

    def test_a_callback_that_hangs_costs_one_thread_and_every_call_ends_by_its_deadline(self):
        gate = threading.Event()
        calls = []

        def stuck(user, alias, out, capacity, length):
            calls.append(alias)
            gate.wait()
            return load(user, alias, out, capacity, length)

        hanging = Host(1, c.sizeof(Host), None, create_t(create), load_t(stuck), create_t(sign), host.delete_key, attest_t(attest))
        self.assertEqual(self.create(host=hanging)[0], 0)
        self.assertEqual(self.call("set_deadline", i64(200)), (0, {}))
        gate.set()
        self.assertEqual(self.call("set_deadline", i64(0)), (0, {}))
        self.assertEqual(self.call("register_device", APP)[0], 0)
        self.assertEqual(self.call("is_registered", APP), (0, {"registered": True}))
        gate.clear()
        del calls[:]
        self.assertEqual(self.call("set_deadline", i64(100)), (0, {}))
        self.assertEqual(self.call("is_registered", APP)[0], 1)
        threads, start = len(os.listdir("/proc/self/task")), time.monotonic()
        for _ in range(20):
            status, error = self.call("is_registered", APP)
            self.assertEqual((status, error["code"]), (1, "NETWORK_ERROR"))
        self.assertLess(time.monotonic() - start, 25)
        self.assertLessEqual(len(os.listdir("/proc/self/task")), threads + 2)
        self.assertEqual(len(calls), 1)
        gate.set()
        self.assertEqual(self.call("set_deadline", i64(0)), (0, {}))
        self.assertEqual(self.call("is_registered", APP), (0, {"registered": True}))

    def test_a_directory_of_another_user_or_that_others_can_enter_is_refused(self):
        os.chmod(self.directory, 0o750)
        self.assertEqual(self.create()[0], 0)
        status, error = self.call("register_device", APP)
        self.assertEqual((status, error["code"]), (18, "STORAGE_ERROR"))
        os.chmod(self.directory, 0o700)
        if os.geteuid() == 0:
            os.chown(self.directory, 65534, 65534)
            self.assertEqual(self.call("register_device", APP)[0], 18)
            os.chown(self.directory, 0, 0)
        self.assertEqual(self.call("register_device", APP)[0], 0)

    def test_storage_callbacks_without_a_directory_are_refused(self):
        stored = Host.from_buffer_copy(host)
        stored.read_record, stored.write_record = load_t(load), write_t(lambda *_: 0)
        self.assertEqual(self.create(host=stored)[0], 101)
        stored.remove_record = delete_t(lambda *_: 0)
        self.directory = None
        status, error = self.create(host=stored)
        self.assertEqual((status, error["message"].split(":")[0]), (101, "directory"))

    def test_sends_side_by_side(self):
        self.registered()
        answers = []

        def one(number):
            body = str(number).encode()
            answers.append((number, self.send("send", method=b"POST", url=self.url + b"/v1", body=body, body_length=len(body))))

        threads = [threading.Thread(target=one, args=[number]) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), 16)
        for number, (status, _, body) in answers:
            self.assertEqual((status, body), (0, str(number).encode()))

    def test_only_to_origins_that_are_allowed(self):
        self.registered()
        self.assertEqual(self.send("send", method=b"GET", url=b"https://example.com/")[1]["code"], "SIGNING_FAILED")
        self.assertEqual(self.call("allow_origin", b"https://example.com"), (0, {}))
        self.assertEqual(self.send("sign", method=b"GET", url=b"https://example.com/")[0], 0)
        self.assertEqual(self.call("is_registered", APP), (0, {"registered": True}))

    def test_a_request_that_was_not_sent_reports_may_have_happened_false(self):
        self.registered()
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            origin = f"http://127.0.0.1:{nobody.getsockname()[1]}".encode()
            self.assertEqual(self.call("allow_origin", origin), (0, {}))
            status, error, _ = self.send("send", method=b"POST", url=origin + b"/", body=b"x", body_length=1)
        self.assertEqual((status, error["may_have_happened"], error["recovery"]), (1, False, "retry"))

    def test_a_damaged_record_can_be_reset_whatever_its_size(self):
        self.software() or self.skipTest("a release build registers no software keys")
        self.call("register_device", APP)
        folder = self.directory.decode()
        record = next(f"{folder}/{name}" for name in os.listdir(folder) if name.endswith(".json"))
        with open(record, "wb") as file:
            file.write(b"x" * 10_000_000)
        self.assertEqual(self.call("reset_device_identity", APP, b"user_requested"), (0, {}))
        self.assertEqual(self.call("register_device", APP)[1]["status"], "registered")

    def test_a_storage_that_is_busy_is_to_be_tried_again(self):
        busy = Host.from_buffer_copy(host)
        busy.read_record, busy.write_record, busy.remove_record = load_t(lambda *_: 1), write_t(lambda *_: 3), delete_t(lambda *_: 0)
        self.assertEqual(self.create(host=busy)[0], 0)
        status, error = self.call("register_device", APP)
        self.assertEqual((status, error["recovery"], "write_record" in error["message"]), (18, "retry", True))

    def test_a_forked_process_is_told_so(self):
        program = ("import ctypes as c, os, sys; lib = c.CDLL(sys.argv[1]); handle, result = c.c_void_p(), c.c_char_p()\n"
                   "create = lambda: lib.synheart_auth_create(b'http://127.0.0.1:1', sys.argv[2].encode(), None, c.byref(handle), None)\n"
                   "call = lambda: lib.synheart_auth_is_registered(handle, b'com.example.app', c.byref(result))\n"
                   "print(create(), call() if sys.argv[3] else 0, flush=True)\n"
                   "if os.fork() == 0: print(call(), create(), result.value.decode(), flush=True); os._exit(0)\n"
                   "os.wait()")
        for calls in ("calls", ""):
            with self.subTest(calls=calls):
                output = subprocess.run([sys.executable, "-c", program, lib._name, self.directory.decode(), calls], capture_output=True,
                                        text=True, timeout=60).stdout.splitlines()
                self.assertEqual([line[:5].strip() for line in output], ["0 0", "15 15"])
                self.assertIn("forked", output[1])

    def test_bad_arguments(self):
        self.assertEqual(self.create(b"http://example.com")[0], 15)
        self.assertEqual(self.create(b"\xff")[0], 101)
        directory, self.directory = self.directory, b"\xff"
        self.assertEqual(self.create()[0], 101)
        self.directory = directory
        self.assertEqual(self.create()[0], 0)
        self.assertEqual(self.call("register_device", None)[0], 101)
        self.assertEqual(self.call("register_device", b"not an app id")[0], 15)
        self.assertEqual(self.call("rotate_key", APP, b"because")[0], 101)
        self.assertEqual(self.call("sign_request", APP, b"GET", b"/", None, i64(5))[0], 101)
        self.assertEqual(self.call("sign_request", APP, b"GET", b"/", b"x", i64(-1))[0], 101)
        status, error = self.call("sign_request", APP, b"GET", b"/", b"x", i64(2**63 - 1))
        self.assertEqual((status, error["recovery"], error["retryable"], error["may_have_happened"]), (101, "none", False, False))
        self.assertEqual(self.call("sign_request", APP, b"GET", b"/", None, i64(0))[0], 14)
        self.assertEqual(lib.synheart_auth_register_device(None, APP, None), 101)
        lib.synheart_auth_free(None)
        lib.synheart_auth_string_free(None)

    def software(self):
        """Makes an instance with software keys. Returns whether the library has development mode."""
        status, _ = self.call("create_with_software_keys", self.url, self.directory, c.byref(self.handle), handle=False)
        self.assertEqual(status, 0)
        self.assertEqual(self.call("use_development_mode", b"symbian")[0], 101)
        status, result = self.call("use_development_mode", b"android")
        self.assertIn((status, result.get("code")), [(0, None), (15, "NOT_CONFIGURED")])
        return status == 0

    def test_software_keys_register_in_development_mode(self):
        if self.software():
            self.assertEqual(self.call("register_device", APP)[1]["status"], "registered")
            self.assertEqual(StandInService.registered[-1]["platform"], "android")
        else:
            status, error = self.call("register_device", APP)
            self.assertEqual((status, error["class"]), (3, "AttestationUnavailable"))

    def test_everything_goes_through_the_host_s_http_client(self):
        sent, answers = [], []

        def send(user, request, answer):
            request = request.contents
            sent.append((request.method, request.url.decode(), json.loads(request.headers)))
            body = c.string_at(request.body, request.body_length) if request.body_length else b""
            headers = {line["name"]: line["value"] for line in json.loads(request.headers)}
            message = urllib.request.Request(request.url.decode(), body or None, headers, method=request.method.decode())
            try:
                with urllib.request.urlopen(message, timeout=request.deadline_ms / 1000) as got:
                    status, lines, data = got.status, got.headers.items(), got.read()
            except urllib.error.HTTPError as error:
                status, lines, data = error.code, error.headers.items(), error.read()
            text = json.dumps([{"name": name, "value": value} for name, value in lines]).encode()
            self.assertEqual(lib.synheart_auth_http_answer_set(answer, 42, text, data, i64(len(data))), 101)
            self.assertEqual(lib.synheart_auth_http_answer_set(answer, status, b"{}", data, i64(len(data))), 101)
            self.assertEqual(lib.synheart_auth_http_answer_set(answer, status, text, data, i64(len(data))), 0)
            self.assertEqual(lib.synheart_auth_http_answer_set(answer, status, text, data, i64(len(data))), 101)
            answers.append(answer)
            return 0

        released = threading.Event()
        self.assertEqual(self.create()[0], 0)
        callbacks = keep(send_t(send), delete_t_user(lambda user: released.set()))
        table = Transport(1, c.sizeof(Transport), None, *callbacks)
        self.assertEqual(self.call("set_transport", c.byref(table))[0], 0)
        self.assertEqual(self.call("register_device", APP)[1]["status"], "registered")
        self.assertEqual([url.rsplit("/", 1)[1] for _, url, _ in sent], ["challenge", "register"])
        # After the callback has returned, its answer can no longer be set.
        for answer in answers:
            self.assertEqual(lib.synheart_auth_http_answer_set(answer, 200, None, None, i64(0)), 101)
        lib.synheart_auth_free(self.handle)
        self.handle = c.c_void_p()
        self.assertTrue(released.wait(30))

    def test_an_http_client_that_gives_no_answer_is_a_network_error(self):
        self.assertEqual(self.create()[0], 0)
        callbacks = keep(send_t(lambda *_: 3), delete_t_user(lambda user: None))
        self.assertEqual(self.call("set_transport", c.byref(Transport(1, c.sizeof(Transport), None, *callbacks)))[0], 0)
        self.assertEqual(self.call("set_deadline", i64(2000))[0], 0)
        self.assertEqual(self.call("register_device", APP)[0], 1)

    def test_an_http_client_that_hangs_costs_a_bounded_number_of_threads(self):
        go_on = threading.Event()
        calls = []

        def send(user, request, answer):
            calls.append(1)
            go_on.wait(120)
            return 3

        self.registered()
        callbacks = keep(send_t(send), delete_t_user(lambda user: None))
        self.assertEqual(self.call("set_transport", c.byref(Transport(1, c.sizeof(Transport), None, *callbacks)))[0], 0)
        before = len(os.listdir("/proc/self/task"))
        for _ in range(200):
            status, error, _ = self.send("send", method=b"POST", url=self.url + b"/v1/hsi", deadline_ms=20)
            self.assertEqual((status, error["code"]), (1, "NETWORK_ERROR"))
        self.assertLessEqual(len(calls), 16)
        self.assertLessEqual(len(os.listdir("/proc/self/task")), before + 16 + 8)
        go_on.set()
        time.sleep(0.5)
        self.assertLessEqual(len(calls), 16, "a request was sent after its deadline")

    def test_an_observer_that_hangs_delays_nothing(self):
        go_on = threading.Event()
        self.addCleanup(go_on.set)
        callbacks = keep(text_t(lambda user, text: go_on.wait(120) and None), text_t(lambda user, text: None),
                         delete_t_user(lambda user: None))
        self.assertEqual(self.create()[0], 0)
        self.assertEqual(self.call("set_observer", c.byref(Observer(1, c.sizeof(Observer), None, *callbacks)))[0], 0)
        start = time.monotonic()
        self.assertEqual(self.call("register_device", APP)[0], 0)
        self.assertLess(time.monotonic() - start, 60)

    def test_a_table_of_another_version_or_size_is_refused(self):
        self.assertEqual(self.create()[0], 0)
        callbacks = keep(send_t(lambda *_: 3), delete_t_user(lambda user: None))
        for version, size in [(0, c.sizeof(Transport)), (2, c.sizeof(Transport)), (1, c.sizeof(Transport) - 1), (1, 0)]:
            self.assertEqual(self.call("set_transport", c.byref(Transport(version, size, None, *callbacks)))[0], 101)
            self.assertEqual(self.call("set_observer", c.byref(Observer(version, size, None)))[0], 101)
        # A later version of the header may have a larger table.
        self.assertEqual(self.call("set_transport", c.byref(Transport(1, c.sizeof(Transport) + 64, None, *callbacks)))[0], 0)

    def test_an_observer_hears_of_states_and_events_but_of_no_secret(self):
        entries, changes, released = [], [], threading.Event()
        callbacks = keep(text_t(lambda user, text: entries.append(json.loads(text))),
                         text_t(lambda user, text: changes.append(json.loads(text))),
                         delete_t_user(lambda user: released.set()))
        self.assertEqual(self.create()[0], 0)
        self.assertEqual(self.call("set_observer", c.byref(Observer(1, c.sizeof(Observer), None, *callbacks)))[0], 0)
        _, result = self.call("register_device", APP)

        def is_told():
            # Both callbacks must have received their last event. Each callback receives its own events in order, independently of
            # the other callback.
            return changes and changes[-1]["to"] == "registered" and "registrationFinished" in [entry["event"] for entry in entries]

        deadline = time.time() + 30
        while not is_told() and time.time() < deadline:
            time.sleep(0.01)
        self.assertEqual([change["to"] for change in changes], ["challengeReceived", "keyReady", "registering", "registered"])
        self.assertIn("registrationFinished", [entry["event"] for entry in entries])
        self.assertNotIn(result["device_id"], json.dumps(entries + changes))
        lib.synheart_auth_free(self.handle)
        self.handle = c.c_void_p()
        self.assertTrue(released.wait(30))

    def test_cancel_ends_the_calls_under_way(self):
        waiting, go_on = threading.Event(), threading.Event()

        def send(user, request, answer):
            waiting.set()
            go_on.wait(60)
            return 3

        self.assertEqual(self.create()[0], 0)
        callbacks = keep(send_t(send), delete_t_user(lambda user: None))
        self.assertEqual(self.call("set_transport", c.byref(Transport(1, c.sizeof(Transport), None, *callbacks)))[0], 0)
        results = []
        thread = threading.Thread(target=lambda: results.append(self.call("register_device", APP)))
        thread.start()
        self.assertTrue(waiting.wait(30))
        lib.synheart_auth_cancel(self.handle)
        thread.join(30)
        self.assertEqual((results[0][0], results[0][1]["code"], results[0][1]["recovery"]), (21, "CANCELLED", "retry"))
        go_on.set()

    def test_a_host_that_lies_about_lengths_does_no_harm(self):
        def liar(user, alias, challenge, challenge_length, out, capacity, length):
            length[0] = capacity + 1
            return 0

        broken = Host(1, c.sizeof(Host), None, create_t(liar), load_t(load), create_t(sign), delete_t(lambda *_: 0), attest_t(attest))
        self.assertEqual(self.create(host=broken)[0], 0)
        self.assertEqual(self.call("register_device", APP)[0], 6)


class HTTPRequest(c.Structure):
    _fields_ = [("method", c.c_char_p), ("url", c.c_char_p), ("headers", c.c_char_p), ("body", c.c_void_p),
                ("body_length", i64), ("body_file", c.c_char_p), ("deadline_ms", i64), ("maximum_answer", i64)]


kept = []


def keep(*callbacks):
    """Keeps callbacks alive: an operation that continues after its test still calls them."""
    kept.extend(callbacks)
    return callbacks


send_t = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.POINTER(HTTPRequest), c.c_void_p)
text_t = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)
delete_t_user = c.CFUNCTYPE(None, c.c_void_p)


class Transport(c.Structure):
    _fields_ = [("version", c.c_uint32), ("size", c.c_uint32), ("user", c.c_void_p), ("send", send_t), ("release", delete_t_user)]


class Observer(c.Structure):
    _fields_ = [("version", c.c_uint32), ("size", c.c_uint32), ("user", c.c_void_p), ("log", text_t), ("state_changed", text_t), ("release", delete_t_user)]


lib.synheart_auth_http_answer_set.argtypes = [c.c_void_p, c.c_int32, c.c_char_p, c.c_char_p, i64]
lib.synheart_auth_set_transport.argtypes = [c.c_void_p, c.c_void_p, c.c_void_p]
lib.synheart_auth_set_observer.argtypes = [c.c_void_p, c.c_void_p, c.c_void_p]
lib.synheart_auth_use_development_mode.argtypes = [c.c_void_p, c.c_char_p, c.c_void_p]
lib.synheart_auth_use_scheme.argtypes = [c.c_void_p, c.c_int32, c.c_void_p]
lib.synheart_auth_cancel.argtypes = [c.c_void_p]
lib.synheart_auth_cancel.restype = None


class Request(c.Structure):
    _fields_ = [("scheme", c.c_int32), ("method", c.c_char_p), ("url", c.c_char_p), ("headers", c.c_char_p),
                ("body", c.c_char_p), ("body_length", i64), ("body_file", c.c_char_p), ("deadline_ms", i64),
                ("maximum_answer", i64)]


def verifies_rfc_9421(key, method, origin, path, query, headers, body):
    """Whether the signature is valid for the signature base (RFC 9421, section 2.5) of the components that it covers."""
    label, parameters = headers["Signature-Input"].split("=", 1)
    values = {"@method": method, "@authority": origin.split("://")[1], "@scheme": origin.split("://")[0], "@path": path,
              "@query": "?" + query, "@target-uri": f"{origin}{path}?{query}"}
    digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
    assert headers["Content-Digest"] == f"sha-256=:{digest}:"
    lines = [f'"{name}": {values[name] if name in values else {k.lower(): v for k, v in headers.items()}[name]}'
             for name in re.findall(r'"([^"]*)"', parameters.split(")")[0])]
    base = "\n".join(lines + [f'"@signature-params": {parameters}'])
    raw = base64.b64decode(headers["Signature"].split("=", 1)[1].strip(":"))
    return verifies(key, der(raw), base.encode())


for name in ["register_device", "is_registered", "get_device_id", "get_state", "maintain"]:
    getattr(lib, "synheart_auth_" + name).argtypes = [c.c_void_p, c.c_char_p, c.c_void_p]
for name in ["rotate_key", "reset_device_identity", "device_token"]:
    getattr(lib, "synheart_auth_" + name).argtypes = [c.c_void_p, c.c_char_p, c.c_char_p, c.c_void_p]
lib.synheart_auth_sign_request.argtypes = [c.c_void_p, c.c_char_p, c.c_char_p, c.c_char_p, c.c_char_p, i64, c.c_void_p]
lib.synheart_auth_create.argtypes = [c.c_char_p, c.c_char_p, c.c_void_p, c.c_void_p, c.c_void_p]
lib.synheart_auth_create_with_software_keys.argtypes = [c.c_char_p, c.c_char_p, c.c_void_p, c.c_void_p]
lib.synheart_auth_set_deadline.argtypes = [c.c_void_p, i64, c.c_void_p]
lib.synheart_auth_allow_origin.argtypes = [c.c_void_p, c.c_char_p, c.c_void_p]
lib.synheart_auth_sign.argtypes = [c.c_void_p, c.c_char_p, c.POINTER(Request), c.c_void_p]
lib.synheart_auth_send.argtypes = lib.synheart_auth_sign.argtypes + [c.c_void_p, c.c_void_p]
lib.synheart_auth_bytes_free.argtypes = [c.c_void_p]
lib.synheart_auth_bytes_free.restype = None
lib.synheart_auth_free.argtypes = [c.c_void_p]
lib.synheart_auth_free.restype = None
lib.synheart_auth_string_free.argtypes = [c.c_void_p]

if __name__ == "__main__":
    unittest.main()

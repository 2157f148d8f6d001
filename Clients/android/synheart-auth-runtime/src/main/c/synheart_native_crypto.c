/* The functions that Synheart Core's runtime looks up by name in libsynheart_native_crypto.so, over the Kotlin client.
 *
 * Each converts its arguments to byte arrays, calls one static function of ai.synheart.auth.android.RuntimeFunctions, and
 * converts the result. Texts are passed as UTF-8 bytes: JNI's own texts are modified UTF-8, and malformed ones end the process
 * under CheckJNI.
 *
 * Any thread may call. A thread that the JVM does not know is attached as a daemon for the call and detached after it: on
 * Android, a thread that ends while it is attached ends the process. A caller's own pending exception survives the call. */
#include <jni.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* In bytes. Longer texts are refused, as in Kotlin. */
#define MAXIMUM_TEXT (64 * 1024)
#define MAXIMUM_MESSAGE (16 * 1024 * 1024)
#define MAXIMUM_RESULT (1024 * 1024)
/* References that one call may hold: its arguments and its result. */
#define LOCAL_REFERENCES 8
#define MAXIMUM_ARGUMENTS 3

EXPORT jint JNI_OnLoad(JavaVM *vm, void *reserved);
EXPORT char *synheart_native_generate_key(const char *device_id);
EXPORT char *synheart_native_sign_bytes(const char *device_id, const uint8_t *data, intptr_t len);
EXPORT char *synheart_native_get_attestation(const char *device_id, const uint8_t *challenge_hash, intptr_t len);
EXPORT int32_t synheart_native_key_exists(const char *device_id);
EXPORT int32_t synheart_native_delete_key(const char *device_id);
EXPORT int32_t synheart_native_secure_store(const char *service, const char *key, const char *value);
EXPORT char *synheart_native_secure_load(const char *service, const char *key);
EXPORT int32_t synheart_native_secure_delete(const char *service, const char *key);

enum function {
    GENERATE_KEY,
    SIGN_BYTES,
    GET_ATTESTATION,
    KEY_EXISTS,
    DELETE_KEY,
    SECURE_STORE,
    SECURE_LOAD,
    SECURE_DELETE,
    FUNCTIONS
};

static const struct {
    const char *name, *descriptor;
} names[FUNCTIONS] = {
    {"generateKey", "([B)[B"},    {"signBytes", "([B[B)[B"},    {"getAttestation", "([B[B)[B"}, {"keyExists", "([B)I"},
    {"deleteKey", "([B)I"},       {"secureStore", "([B[B[B)I"}, {"secureLoad", "([B[B)[B"},     {"secureDelete", "([B[B)I"},
};

/* Written by JNI_OnLoad before System.loadLibrary returns, and never again. `virtual_machine` is written last: a call that sees it
 * set also sees the class and the methods. */
static JavaVM *virtual_machine;
static jclass functions_class;
static jmethodID methods[FUNCTIONS];

/* An argument. A text is zero-terminated and has no length. */
struct octets {
    const void *bytes;
    size_t length;
};

/* The state of one call into the JVM. */
struct visit {
    JNIEnv *env;
    JavaVM *vm;
    jthrowable pending;
    jboolean is_attached;
};

/* If the class or a function is not found, System.loadLibrary throws an error that names it. The cause is that the
 * app has no Kotlin client, or that its shrinker removed the class or the function. */
jint JNI_OnLoad(JavaVM *vm, void *reserved) {
    (void)reserved;
    void *env_pointer = NULL;
    if ((*vm)->GetEnv(vm, &env_pointer, JNI_VERSION_1_6) != JNI_OK) return JNI_ERR;
    JNIEnv *env = env_pointer;
    /* Here the app's class loader is used; on a native thread it would be the system's. */
    jclass local = (*env)->FindClass(env, "ai/synheart/auth/android/RuntimeFunctions");
    if (!local) return JNI_ERR;
    jclass global = (*env)->NewGlobalRef(env, local);
    (*env)->DeleteLocalRef(env, local);
    if (!global) return JNI_ERR;
    for (int i = 0; i < FUNCTIONS; i++) {
        methods[i] = (*env)->GetStaticMethodID(env, global, names[i].name, names[i].descriptor);
        if (!methods[i]) {
            /* Do not delete the reference: few JNI calls are allowed while an exception is pending. */
            return JNI_ERR;
        }
    }
    functions_class = global;
    __atomic_store_n(&virtual_machine, vm, __ATOMIC_RELEASE);
    return JNI_VERSION_1_6;
}

/* Attaches the thread if necessary, and starts a call into the JVM. Returns false if the library was not loaded by
 * System.loadLibrary, or if the JVM has no room for another thread or frame. */
static int enter(struct visit *visit) {
    memset(visit, 0, sizeof *visit);
    visit->vm = __atomic_load_n(&virtual_machine, __ATOMIC_ACQUIRE);
    if (!visit->vm) return 0;
    void *env_pointer = NULL;
    jint state = (*visit->vm)->GetEnv(visit->vm, &env_pointer, JNI_VERSION_1_6);
    if (state == JNI_EDETACHED) {
        JavaVMAttachArgs arguments = {JNI_VERSION_1_6, "synheart-core", NULL};
        /* Android declares the first argument as JNIEnv **, Java as void **. */
#ifdef __ANDROID__
        state = (*visit->vm)->AttachCurrentThreadAsDaemon(visit->vm, &visit->env, &arguments);
#else
        state = (*visit->vm)->AttachCurrentThreadAsDaemon(visit->vm, &env_pointer, &arguments);
        visit->env = env_pointer;
#endif
        if (state != JNI_OK) return 0;
        visit->is_attached = JNI_TRUE;
    } else if (state == JNI_OK) {
        visit->env = env_pointer;
    } else {
        return 0;
    }
    JNIEnv *env = visit->env;
    visit->pending = (*env)->ExceptionOccurred(env);
    if (visit->pending) (*env)->ExceptionClear(env);
    if ((*env)->PushLocalFrame(env, LOCAL_REFERENCES) != 0) {
        (*env)->ExceptionClear(env);
        if (visit->pending) (*env)->Throw(env, visit->pending);
        if (visit->is_attached) (*visit->vm)->DetachCurrentThread(visit->vm);
        return 0;
    }
    return 1;
}

static void leave(struct visit *visit) {
    JNIEnv *env = visit->env;
    (*env)->PopLocalFrame(env, NULL);
    if (visit->pending) {
        (*env)->Throw(env, visit->pending);
        (*env)->DeleteLocalRef(env, visit->pending);
    }
    if (visit->is_attached) (*visit->vm)->DetachCurrentThread(visit->vm);
}

/* Returns whether no exception is pending, and clears a pending one: Kotlin logs its failures, and throws only if memory runs
 * out. */
static int is_fine(JNIEnv *env) {
    if (!(*env)->ExceptionCheck(env)) return 1;
    (*env)->ExceptionClear(env);
    return 0;
}

/* Copies the arguments into Java byte arrays. Returns false if memory runs out. */
static int prepare(JNIEnv *env, const struct octets *arguments, int count, jvalue *values) {
    for (int i = 0; i < count; i++) {
        jsize length = (jsize)arguments[i].length;
        jbyteArray array = (*env)->NewByteArray(env, length);
        if (!is_fine(env) || !array) return 0;
        if (length > 0) {
            (*env)->SetByteArrayRegion(env, array, 0, length, arguments[i].bytes);
            if (!is_fine(env)) return 0;
        }
        values[i].l = array;
    }
    return 1;
}

/* Copies a Java byte array into a malloc'd text. Returns NULL for null, for a text beyond 1 MiB or with a zero
 * byte, and if memory runs out. */
static char *text_of(JNIEnv *env, jbyteArray array) {
    if (!array) return NULL;
    jsize length = (*env)->GetArrayLength(env, array);
    if (length < 0 || length > MAXIMUM_RESULT) return NULL;
    char *text = malloc((size_t)length + 1);
    if (!text) return NULL;
    (*env)->GetByteArrayRegion(env, array, 0, length, (jbyte *)text);
    text[length] = 0;
    if (!is_fine(env) || memchr(text, 0, (size_t)length)) {
        free(text);
        return NULL;
    }
    return text;
}

static char *text_from(enum function function, const struct octets *arguments, int count) {
    struct visit visit;
    if (!enter(&visit)) return NULL;
    char *text = NULL;
    jvalue values[MAXIMUM_ARGUMENTS];
    if (prepare(visit.env, arguments, count, values)) {
        jbyteArray result = (*visit.env)->CallStaticObjectMethodA(visit.env, functions_class, methods[function], values);
        if (is_fine(visit.env)) text = text_of(visit.env, result);
    }
    leave(&visit);
    return text;
}

static int32_t number_from(enum function function, const struct octets *arguments, int count, int32_t failed) {
    struct visit visit;
    if (!enter(&visit)) return failed;
    int32_t number = failed;
    jvalue values[MAXIMUM_ARGUMENTS];
    if (prepare(visit.env, arguments, count, values)) {
        jint result = (*visit.env)->CallStaticIntMethodA(visit.env, functions_class, methods[function], values);
        if (is_fine(visit.env)) number = result;
    }
    leave(&visit);
    return number;
}

/* Describes a text argument in `octets`. Returns false for NULL, and for a text beyond 64 KiB. */
static int is_text(const char *text, struct octets *octets) {
    if (!text) return 0;
    octets->bytes = text;
    octets->length = strnlen(text, MAXIMUM_TEXT + 1);
    return octets->length <= MAXIMUM_TEXT;
}

/* Describes a data argument in `octets`. Returns false for NULL with a length, and for a length below 0 or beyond
 * 16 MiB. */
static int is_data(const uint8_t *data, intptr_t length, struct octets *octets) {
    if (length < 0 || length > MAXIMUM_MESSAGE || (!data && length > 0)) return 0;
    octets->bytes = data;
    octets->length = (size_t)length;
    return 1;
}

char *synheart_native_generate_key(const char *device_id) {
    struct octets arguments[1];
    return is_text(device_id, &arguments[0]) ? text_from(GENERATE_KEY, arguments, 1) : NULL;
}

char *synheart_native_sign_bytes(const char *device_id, const uint8_t *data, intptr_t len) {
    struct octets arguments[2];
    return is_text(device_id, &arguments[0]) && is_data(data, len, &arguments[1]) ? text_from(SIGN_BYTES, arguments, 2) : NULL;
}

/* Returns NULL only if memory runs out. */
char *synheart_native_get_attestation(const char *device_id, const uint8_t *challenge_hash, intptr_t len) {
    struct octets arguments[2];
    int is_sound = is_text(device_id, &arguments[0]) && is_data(challenge_hash, len, &arguments[1]);
    char *text = is_sound ? text_from(GET_ATTESTATION, arguments, 2) : NULL;
    if (text) return text;
    return strdup(is_sound ? "{\"format\":\"none\",\"blob\":\"\",\"reason\":\"the Kotlin client does not answer\"}"
                           : "{\"format\":\"none\",\"blob\":\"\",\"reason\":\"a malformed argument\"}");
}

int32_t synheart_native_key_exists(const char *device_id) {
    struct octets arguments[1];
    /* Returns 1 if the check fails, because a key that cannot be checked must not look lost. */
    return is_text(device_id, &arguments[0]) ? number_from(KEY_EXISTS, arguments, 1, 1) : 0;
}

int32_t synheart_native_delete_key(const char *device_id) {
    struct octets arguments[1];
    return is_text(device_id, &arguments[0]) ? number_from(DELETE_KEY, arguments, 1, 1) : 1;
}

int32_t synheart_native_secure_store(const char *service, const char *key, const char *value) {
    struct octets arguments[3];
    int is_sound = is_text(service, &arguments[0]) && is_text(key, &arguments[1]) && is_text(value, &arguments[2]);
    return is_sound ? number_from(SECURE_STORE, arguments, 3, 1) : 1;
}

char *synheart_native_secure_load(const char *service, const char *key) {
    struct octets arguments[2];
    return is_text(service, &arguments[0]) && is_text(key, &arguments[1]) ? text_from(SECURE_LOAD, arguments, 2) : NULL;
}

int32_t synheart_native_secure_delete(const char *service, const char *key) {
    struct octets arguments[2];
    return is_text(service, &arguments[0]) && is_text(key, &arguments[1]) ? number_from(SECURE_DELETE, arguments, 2, 1) : 1;
}

/* JNI glue between SynheartAuth.java and synheart_auth.h. */
#include <jni.h>
#include <stdint.h>
#include <stdlib.h>

#include "synheart_auth.h"

/* ---------------------------------------------------------------- the host's callbacks, which call a SynheartAuth.Host */

typedef struct host {
    JavaVM *vm;
    jobject object;
} host;

/* This thread's environment. Callbacks may come on threads that the JVM does not know; those are detached again. */
static JNIEnv *attach(const host *host, int *is_ours) {
    JNIEnv *env = NULL;
    *is_ours = (*host->vm)->GetEnv(host->vm, (void **)&env, JNI_VERSION_1_6) == JNI_EDETACHED;
#ifdef __ANDROID__
    if (*is_ours && (*host->vm)->AttachCurrentThread(host->vm, &env, NULL) != JNI_OK) return NULL;
#else
    if (*is_ours && (*host->vm)->AttachCurrentThread(host->vm, (void **)&env, NULL) != JNI_OK) return NULL;
#endif
    return env;
}

/* The status of the pending exception: a HostFailure's own, else FAILED. */
static int32_t thrown(JNIEnv *env) {
    jthrowable exception = (*env)->ExceptionOccurred(env);
    (*env)->ExceptionClear(env);
    jfieldID status = (*env)->GetFieldID(env, (*env)->GetObjectClass(env, exception), "status", "I");
    if (status) return (*env)->GetIntField(env, exception, status);
    (*env)->ExceptionClear(env);
    return SYNHEART_AUTH_HOST_FAILED;
}

static jbyteArray java_bytes(JNIEnv *env, const uint8_t *bytes, int64_t count) {
    jbyteArray array = (*env)->NewByteArray(env, (jsize)count);
    if (array) (*env)->SetByteArrayRegion(env, array, 0, (jsize)count, (const jbyte *)bytes);
    return array;
}

typedef struct input {
    const uint8_t *bytes;
    int64_t count;
} input;

/* Calls `name` with as many of (alias, first, second) as its type takes, and copies the result. */
static int32_t invoke(void *user, const char *name, const char *type, const char *alias, input first, input second, uint8_t *out,
                      int64_t capacity, int64_t *length) {
    const host *host = user;
    int is_ours = 0;
    JNIEnv *env = attach(host, &is_ours);
    if (!env) return SYNHEART_AUTH_HOST_FAILED;
    int32_t status = SYNHEART_AUTH_HOST_FAILED;
    if ((*env)->PushLocalFrame(env, 16) == 0) {
        jmethodID method = (*env)->GetMethodID(env, (*env)->GetObjectClass(env, host->object), name, type);
        jvalue arguments[3] = {0};
        if (method) arguments[0].l = (*env)->NewStringUTF(env, alias);
        if (arguments[0].l) arguments[1].l = java_bytes(env, first.bytes, first.count);
        if (arguments[1].l) arguments[2].l = java_bytes(env, second.bytes, second.count);
        if (arguments[2].l && !out) {
            (*env)->CallVoidMethodA(env, host->object, method, arguments);
            status = SYNHEART_AUTH_HOST_OK;
        } else if (arguments[2].l) {
            jbyteArray value = (*env)->CallObjectMethodA(env, host->object, method, arguments);
            if (!(*env)->ExceptionCheck(env) && !value) status = SYNHEART_AUTH_HOST_NOT_FOUND;
            jsize count = value ? (*env)->GetArrayLength(env, value) : 0;
            if (value && count <= capacity) {
                (*env)->GetByteArrayRegion(env, value, 0, count, (jbyte *)out);
                *length = count;
                status = SYNHEART_AUTH_HOST_OK;
            }
        }
        if ((*env)->ExceptionCheck(env)) status = thrown(env);
        (*env)->PopLocalFrame(env, NULL);
    }
    if (is_ours) (*host->vm)->DetachCurrentThread(host->vm);
    return status;
}

static const input nothing = {(const uint8_t *)"", 0};

static int32_t create_key(void *user, const char *alias, const uint8_t *challenge, int64_t count, uint8_t *out, int64_t capacity,
                          int64_t *length) {
    input input = {challenge, count};
    return invoke(user, "createKey", "(Ljava/lang/String;[B)[B", alias, input, nothing, out, capacity, length);
}

static int32_t load_key(void *user, const char *alias, uint8_t *out, int64_t capacity, int64_t *length) {
    return invoke(user, "loadKey", "(Ljava/lang/String;)[B", alias, nothing, nothing, out, capacity, length);
}

static int32_t sign(void *user, const char *alias, const uint8_t *message, int64_t count, uint8_t *out, int64_t capacity,
                    int64_t *length) {
    input input = {message, count};
    return invoke(user, "sign", "(Ljava/lang/String;[B)[B", alias, input, nothing, out, capacity, length);
}

static int32_t delete_key(void *user, const char *alias) {
    return invoke(user, "deleteKey", "(Ljava/lang/String;)V", alias, nothing, nothing, NULL, 0, NULL);
}

static int32_t attest(void *user, const char *alias, const uint8_t *challenge, int64_t count, const uint8_t *nonce, uint8_t *out,
                      int64_t capacity, int64_t *length) {
    input first = {challenge, count}, second = {nonce, 32};
    return invoke(user, "attest", "(Ljava/lang/String;[B[B)[B", alias, first, second, out, capacity, length);
}

static void release(void *user) {
    host *host = user;
    int is_ours = 0;
    JNIEnv *env = attach(host, &is_ours);
    if (env) (*env)->DeleteGlobalRef(env, host->object);
    if (is_ours) (*host->vm)->DetachCurrentThread(host->vm);
    free(host);
}

/* ---------------------------------------------------------------- the facade's methods */

/* The result as a Java string; NULL with a pending Failure if the status is an error. */
static jstring finish(JNIEnv *env, int32_t status, char *result) {
    jstring text = (*env)->NewStringUTF(env, result ? result : "{}");
    synheart_auth_string_free(result);
    if (status == SYNHEART_AUTH_OK || !text) return text;
    jclass type = (*env)->FindClass(env, "ai/synheart/auth/SynheartAuth$Failure");
    jmethodID init = type ? (*env)->GetMethodID(env, type, "<init>", "(ILjava/lang/String;)V") : NULL;
    jobject failure = init ? (*env)->NewObject(env, type, init, (jint)status, text) : NULL;
    if (failure) (*env)->Throw(env, (jthrowable)failure);
    return NULL;
}

static const char *text(JNIEnv *env, jstring string) { return string ? (*env)->GetStringUTFChars(env, string, NULL) : NULL; }

static void done(JNIEnv *env, jstring string, const char *chars) {
    if (chars) (*env)->ReleaseStringUTFChars(env, string, chars);
}

JNIEXPORT jlong JNICALL Java_ai_synheart_auth_SynheartAuth_create(JNIEnv *env, jclass type, jstring url, jstring directory,
                                                                  jobject object) {
    (void)type;
    host *user = calloc(1, sizeof(host));
    if (!user || (*env)->GetJavaVM(env, &user->vm) != JNI_OK || !(user->object = (*env)->NewGlobalRef(env, object))) {
        free(user);
        finish(env, SYNHEART_AUTH_INVALID_ARGUMENT, NULL);
        return 0;
    }
    /* From here on `release` ends the host, also if no instance is created. */
    synheart_auth_host callbacks = {.user = user, .create_key = create_key, .load_key = load_key, .sign = sign,
                                    .delete_key = delete_key, .attest = attest, .release = release};
    synheart_auth *handle = NULL;
    char *result = NULL;
    const char *url_chars = text(env, url), *directory_chars = text(env, directory);
    int32_t status = synheart_auth_create(url_chars, directory_chars, &callbacks, &handle, &result);
    done(env, url, url_chars);
    done(env, directory, directory_chars);
    finish(env, status, result);
    return (jlong)(intptr_t)handle;
}

JNIEXPORT jstring JNICALL Java_ai_synheart_auth_SynheartAuth_call(JNIEnv *env, jclass type, jlong handle, jint operation,
                                                                  jstring app, jstring detail) {
    (void)type;
    synheart_auth *auth = (synheart_auth *)(intptr_t)handle;
    const char *app_chars = text(env, app), *detail_chars = text(env, detail);
    char *result = NULL;
    int32_t status = SYNHEART_AUTH_INVALID_ARGUMENT;
    switch (operation) {
        case 0: status = synheart_auth_register_device(auth, app_chars, &result); break;
        case 1: status = synheart_auth_is_registered(auth, app_chars, &result); break;
        case 2: status = synheart_auth_get_device_id(auth, app_chars, &result); break;
        case 3: status = synheart_auth_get_state(auth, app_chars, &result); break;
        case 4: status = synheart_auth_rotate_key(auth, app_chars, detail_chars, &result); break;
        case 5: status = synheart_auth_reset_device_identity(auth, app_chars, detail_chars, &result); break;
        case 6: status = synheart_auth_device_token(auth, app_chars, detail_chars, &result); break;
        case 7: status = synheart_auth_maintain(auth, app_chars, &result); break;
        case 8: status = synheart_auth_allow_origin(auth, detail_chars, &result); break;
    }
    done(env, app, app_chars);
    done(env, detail, detail_chars);
    return finish(env, status, result);
}

JNIEXPORT jstring JNICALL Java_ai_synheart_auth_SynheartAuth_sign(JNIEnv *env, jclass type, jlong handle, jstring app,
                                                                  jstring method, jstring path, jbyteArray body) {
    (void)type;
    char *result = NULL;
    const char *app_chars = text(env, app), *method_chars = text(env, method), *path_chars = text(env, path);
    jbyte *bytes = body ? (*env)->GetByteArrayElements(env, body, NULL) : NULL;
    jsize length = body ? (*env)->GetArrayLength(env, body) : 0;
    int32_t status = synheart_auth_sign_request((synheart_auth *)(intptr_t)handle, app_chars, method_chars, path_chars,
                                                (const uint8_t *)bytes, length, &result);
    if (bytes) (*env)->ReleaseByteArrayElements(env, body, bytes, JNI_ABORT);
    done(env, app, app_chars);
    done(env, method, method_chars);
    done(env, path, path_chars);
    return finish(env, status, result);
}

/* {the result, the response body}; NULL with a pending exception. */
static jobjectArray pair(JNIEnv *env, jstring text, const uint8_t *body, int64_t count) {
    jbyteArray bytes = text ? java_bytes(env, body ? body : nothing.bytes, count) : NULL;
    jclass type = bytes ? (*env)->FindClass(env, "java/lang/Object") : NULL;
    jobjectArray array = type ? (*env)->NewObjectArray(env, 2, type, NULL) : NULL;
    if (!array) return NULL;
    (*env)->SetObjectArrayElement(env, array, 0, text);
    (*env)->SetObjectArrayElement(env, array, 1, bytes);
    return array;
}

JNIEXPORT jobjectArray JNICALL Java_ai_synheart_auth_SynheartAuth_request(JNIEnv *env, jclass type, jlong handle, jboolean sends,
                                                                          jstring app, jint scheme, jstring method, jstring url,
                                                                          jstring headers, jbyteArray body) {
    (void)type;
    synheart_auth *auth = (synheart_auth *)(intptr_t)handle;
    char *result = NULL;
    uint8_t *answer = NULL;
    int64_t count = 0;
    const char *app_chars = text(env, app), *method_chars = text(env, method), *url_chars = text(env, url),
               *headers_chars = text(env, headers);
    jbyte *bytes = body ? (*env)->GetByteArrayElements(env, body, NULL) : NULL;
    synheart_auth_request request = {.scheme = scheme, .method = method_chars, .url = url_chars, .headers = headers_chars,
                                     .body = (const uint8_t *)bytes, .body_length = body ? (*env)->GetArrayLength(env, body) : 0};
    int32_t status = sends ? synheart_auth_send(auth, app_chars, &request, &result, &answer, &count)
                           : synheart_auth_sign(auth, app_chars, &request, &result);
    if (bytes) (*env)->ReleaseByteArrayElements(env, body, bytes, JNI_ABORT);
    done(env, app, app_chars);
    done(env, method, method_chars);
    done(env, url, url_chars);
    done(env, headers, headers_chars);
    jobjectArray array = pair(env, finish(env, status, result), answer, count);
    synheart_auth_bytes_free(answer);
    return array;
}

JNIEXPORT jstring JNICALL Java_ai_synheart_auth_SynheartAuth_limit(JNIEnv *env, jclass type, jlong handle,
                                                                   jlong milliseconds) {
    (void)type;
    char *result = NULL;
    int32_t status = synheart_auth_set_deadline((synheart_auth *)(intptr_t)handle, milliseconds, &result);
    return finish(env, status, result);
}

JNIEXPORT jstring JNICALL Java_ai_synheart_auth_SynheartAuth_correct(JNIEnv *env, jclass type, jlong handle, jstring app,
                                                                     jdouble server_timestamp) {
    (void)type;
    char *result = NULL;
    const char *app_chars = text(env, app);
    int32_t status =
        synheart_auth_correct_clock_skew((synheart_auth *)(intptr_t)handle, app_chars, server_timestamp, &result);
    done(env, app, app_chars);
    return finish(env, status, result);
}

JNIEXPORT void JNICALL Java_ai_synheart_auth_SynheartAuth_free(JNIEnv *env, jclass type, jlong handle) {
    (void)env;
    (void)type;
    synheart_auth_free((synheart_auth *)(intptr_t)handle);
}

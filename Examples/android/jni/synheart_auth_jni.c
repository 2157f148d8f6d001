/* JNI glue between SynheartAuth.java and synheart_auth.h. On a phone `create` takes a synheart_auth_host whose callbacks call
 * KeystoreHost; here keys are in files, so that it runs on any JVM. */
#include <jni.h>
#include <stdint.h>

#include "synheart_auth.h"

/* The result as a Java string; where the status is an error, NULL with a pending Failure. */
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

JNIEXPORT jlong JNICALL Java_ai_synheart_auth_SynheartAuth_create(JNIEnv *env, jclass type, jstring url, jstring directory) {
    (void)type;
    synheart_auth *handle = NULL;
    char *result = NULL;
    const char *url_chars = text(env, url), *directory_chars = text(env, directory);
    int32_t status = synheart_auth_create_with_software_keys(url_chars, directory_chars, &handle, &result);
    done(env, url, url_chars);
    done(env, directory, directory_chars);
    finish(env, status, result);
    return (jlong)(intptr_t)handle;
}

JNIEXPORT jstring JNICALL Java_ai_synheart_auth_SynheartAuth_call(JNIEnv *env, jclass type, jlong handle, jint operation,
                                                                  jstring app) {
    (void)type;
    static int32_t (*const operations[])(synheart_auth *, const char *, char **) = {
        synheart_auth_register_device, synheart_auth_is_registered, synheart_auth_get_device_id};
    char *result = NULL;
    int32_t status = SYNHEART_AUTH_INVALID_ARGUMENT;
    const char *app_chars = text(env, app);
    if (operation >= 0 && operation < 3) status = operations[operation]((synheart_auth *)(intptr_t)handle, app_chars, &result);
    done(env, app, app_chars);
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

JNIEXPORT void JNICALL Java_ai_synheart_auth_SynheartAuth_free(JNIEnv *env, jclass type, jlong handle) {
    (void)env;
    (void)type;
    synheart_auth_free((synheart_auth *)(intptr_t)handle);
}

/* Behaves as Synheart Core does on Android: looks the eight functions up by name in libsynheart_native_crypto.so and calls them
 * from threads that the JVM does not know. The JVM in this process plays the app, on a simulated phone.
 *
 *     life LIBRARY PHONE JVM-OPTION…
 *
 * LIBRARY is the path of the library, PHONE an empty folder. */
#include <dlfcn.h>
#include <jni.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                            \
    do {                                                            \
        if (!(condition)) {                                         \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            exit(1);                                                \
        }                                                           \
    } while (0)

static struct {
    char *(*generate_key)(const char *);
    char *(*sign_bytes)(const char *, const uint8_t *, intptr_t);
    char *(*get_attestation)(const char *, const uint8_t *, intptr_t);
    int32_t (*key_exists)(const char *);
    int32_t (*delete_key)(const char *);
    int32_t (*secure_store)(const char *, const char *, const char *);
    char *(*secure_load)(const char *, const char *);
    int32_t (*secure_delete)(const char *, const char *);
} core;

static const char *const DEVICE = "8f14e45f-ceea-4672-a3c1-0d5e1f8b1c11";
static const char *const ALIAS = "synheart_device_8f14e45f-ceea-4672-a3c1-0d5e1f8b1c11";
static const uint8_t MESSAGE[] = "POST\n/auth/v1/device/register\n\0binary";
static const uint8_t HASH[32] = {1, 2, 3};

static JavaVM *vm;
static JNIEnv *env; /* of the main thread, which the JVM knows */
static jclass phone;

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) fprintf(stderr, "%s\n", dlerror());
    CHECK(found);
    return found;
}

static void look_up(void *library) {
    *(void **)&core.generate_key = symbol(library, "synheart_native_generate_key");
    *(void **)&core.sign_bytes = symbol(library, "synheart_native_sign_bytes");
    *(void **)&core.get_attestation = symbol(library, "synheart_native_get_attestation");
    *(void **)&core.key_exists = symbol(library, "synheart_native_key_exists");
    *(void **)&core.delete_key = symbol(library, "synheart_native_delete_key");
    *(void **)&core.secure_store = symbol(library, "synheart_native_secure_store");
    *(void **)&core.secure_load = symbol(library, "synheart_native_secure_load");
    *(void **)&core.secure_delete = symbol(library, "synheart_native_secure_delete");
}

/* -- The phone -- */

static jmethodID method(const char *name, const char *descriptor) {
    jmethodID found = (*env)->GetStaticMethodID(env, phone, name, descriptor);
    CHECK(found);
    return found;
}

static void check_java(void) {
    if ((*env)->ExceptionCheck(env)) {
        (*env)->ExceptionDescribe(env);
        exit(1);
    }
}

static jstring text(const char *utf8) {
    jstring made = (*env)->NewStringUTF(env, utf8);
    check_java();
    return made;
}

static void happens(const char *what) {
    CHECK((*env)->PushLocalFrame(env, 8) == 0);
    jmethodID id = method("happens", "(Ljava/lang/String;Ljava/lang/String;)V");
    (*env)->CallStaticVoidMethod(env, phone, id, text(what), text(ALIAS));
    check_java();
    (*env)->PopLocalFrame(env, NULL);
}

static int is_true(const char *function, const char *argument) {
    CHECK((*env)->PushLocalFrame(env, 8) == 0);
    jmethodID id = method(function, "(Ljava/lang/String;)Z");
    jboolean answer = (*env)->CallStaticBooleanMethod(env, phone, id, text(argument));
    check_java();
    (*env)->PopLocalFrame(env, NULL);
    return answer;
}

static int verifies(const char *key, const uint8_t *message, jsize length, const char *signature) {
    CHECK((*env)->PushLocalFrame(env, 8) == 0);
    jbyteArray bytes = (*env)->NewByteArray(env, length);
    check_java();
    (*env)->SetByteArrayRegion(env, bytes, 0, length, (const jbyte *)message);
    check_java();
    jmethodID id = method("verifies", "(Ljava/lang/String;[BLjava/lang/String;)Z");
    jboolean answer = (*env)->CallStaticBooleanMethod(env, phone, id, text(key), bytes, text(signature));
    check_java();
    (*env)->PopLocalFrame(env, NULL);
    return answer;
}

static int has_alias(const char *alias) {
    CHECK((*env)->PushLocalFrame(env, 8) == 0);
    jstring aliases = (*env)->CallStaticObjectMethod(env, phone, method("aliases", "()Ljava/lang/String;"));
    check_java();
    const char *list = (*env)->GetStringUTFChars(env, aliases, NULL);
    CHECK(list);
    int found = strstr(list, alias) != NULL;
    (*env)->ReleaseStringUTFChars(env, aliases, list);
    (*env)->PopLocalFrame(env, NULL);
    return found;
}

/* -- Threads that the JVM does not know -- */

static void *run(void *body) {
    void *unused = NULL;
    CHECK((*vm)->GetEnv(vm, &unused, JNI_VERSION_1_6) == JNI_EDETACHED);
    (*(void (**)(void))body)();
    CHECK((*vm)->GetEnv(vm, &unused, JNI_VERSION_1_6) == JNI_EDETACHED);
    return NULL;
}

static void on_threads(int count, void (*body)(void)) {
    pthread_t threads[16];
    for (int i = 0; i < count; i++) CHECK(pthread_create(&threads[i], NULL, run, &body) == 0);
    for (int i = 0; i < count; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void on_a_thread(void (*body)(void)) { on_threads(1, body); }

/* -- The life -- */

static char key[512], signature[128];

/* Calls before System.loadLibrary, or in a process without a JVM, fail and lose nothing. */
static void nothing_works(void) {
    CHECK(!core.generate_key(DEVICE) && !core.sign_bytes(DEVICE, MESSAGE, sizeof MESSAGE));
    char *attestation = core.get_attestation(DEVICE, HASH, sizeof HASH);
    CHECK(attestation && strstr(attestation, "{\"format\":\"none\",\"blob\":\"\",\"reason\":\"") == attestation);
    free(attestation);
    CHECK(core.key_exists(DEVICE) == 1);
    CHECK(core.delete_key(DEVICE) && core.secure_store("s", "k", "v") && core.secure_delete("s", "k") && !core.secure_load("s", "k"));
}

static void opens_its_storage(void) {
    CHECK(!core.secure_load("consent_tokens", "user"));
    CHECK(core.key_exists(DEVICE) == 0);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Several threads at once get one key. */
static void generates(void) {
    char *made = core.generate_key(DEVICE);
    CHECK(made && strlen(made) < sizeof key);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    CHECK(!key[0] || strcmp(key, made) == 0);
    strcpy(key, made);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    free(made);
}

static void signs(void) {
    char *made = core.sign_bytes(DEVICE, MESSAGE, sizeof MESSAGE);
    CHECK(made && strlen(made) < sizeof signature);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    strcpy(signature, made);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    free(made);
}

static void signs_nothing(void) {
    char *made = core.sign_bytes(DEVICE, NULL, 0);
    CHECK(made && strlen(made) < sizeof signature);
    strcpy(signature, made);
    free(made);
}

static void cannot_sign(void) { CHECK(!core.sign_bytes(DEVICE, MESSAGE, sizeof MESSAGE)); }

static char attestation[8192];

static void attests(void) {
    char *made = core.get_attestation(DEVICE, HASH, sizeof HASH);
    CHECK(made && strlen(made) < sizeof attestation);
    strcpy(attestation, made);
    free(made);
}

static const char *const SECRET = "{\"token\":\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x94\x91\",\"n\":1}";

static void keeps_secrets(void) {
    static const char *const names[][2] = {{"consent_tokens", "user"}, {"a b", "c"}, {"a", "b c"}, {"", ""}, {"../../etc", "\xf0\x9f\x94\x91"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char value[128];
        snprintf(value, sizeof value, "%zu %s", i, SECRET);
        CHECK(core.secure_store(names[i][0], names[i][1], "before") == 0);
        CHECK(core.secure_store(names[i][0], names[i][1], value) == 0);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char value[128];
        snprintf(value, sizeof value, "%zu %s", i, SECRET);
        char *loaded = core.secure_load(names[i][0], names[i][1]);
        CHECK(loaded && strcmp(loaded, value) == 0);
        free(loaded);
        /* Deleting an absent secret succeeds. */
        if (i) CHECK(core.secure_delete(names[i][0], names[i][1]) == 0 && core.secure_delete(names[i][0], names[i][1]) == 0);
        if (i) CHECK(!core.secure_load(names[i][0], names[i][1]));
    }
    CHECK(core.secure_store("empty", "", "") == 0);
    char *empty = core.secure_load("empty", "");
    CHECK(empty && !empty[0]);
    free(empty);
}

static void has_its_secret(void) {
    char *loaded = core.secure_load("consent_tokens", "user");
    CHECK(loaded && strstr(loaded, SECRET));
    free(loaded);
}

/* While nothing can be read, no key or secret looks lost, and none is made. */
static void cannot_see(void) {
    CHECK(core.key_exists(DEVICE) == 1);
    CHECK(!core.generate_key(DEVICE) && !core.sign_bytes(DEVICE, MESSAGE, sizeof MESSAGE));
    CHECK(core.delete_key(DEVICE) != 0);
    CHECK(!core.secure_load("consent_tokens", "user"));
    CHECK(core.secure_store("consent_tokens", "user", "other") != 0);
    char *made = core.get_attestation(DEVICE, HASH, sizeof HASH);
    CHECK(made && strstr(made, "\"format\":\"none\""));
    free(made);
}

/* Before the first unlock the Keystore has its keys, but the storage cannot be read. */
static void signs_without_its_storage(void) {
    CHECK(!core.secure_load("consent_tokens", "user") && core.secure_store("consent_tokens", "user", "other"));
    CHECK(core.secure_delete("consent_tokens", "user"));
    signs();
}

/* A permanently lost key: generate_key replaces it. */
static void starts_over(void) {
    cannot_sign();
    CHECK(core.key_exists(DEVICE) == 0);
    key[0] = 0;
    generates();
    CHECK(core.key_exists(DEVICE) == 1);
    signs();
}

static void survives_hostile_input(void) {
    static char longest[64 * 1024 + 1], too_long[64 * 1024 + 2];
    memset(longest, 'x', sizeof longest - 1);
    memset(too_long, 'x', sizeof too_long - 1);
    /* NULL, empty, too long, malformed UTF-8: an overlong NUL, a lone surrogate, a cut sequence, beyond Unicode. */
    const char *const bad[] = {NULL, "", too_long, "\xc0\x80", "\xed\xa0\xbd", "a\xf0\x9f", "\xf5\x80\x80\x80", "\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(!core.generate_key(bad[i]) && !core.sign_bytes(bad[i], MESSAGE, 1) && core.delete_key(bad[i]));
        CHECK(core.key_exists(bad[i]) == 0);
        char *made = core.get_attestation(bad[i], HASH, sizeof HASH);
        CHECK(made && strstr(made, "\"format\":\"none\""));
        free(made);
        if (i == 1) continue; /* service and key may be empty */
        CHECK(core.secure_store(bad[i], "k", "v") && core.secure_store("s", bad[i], "v") && core.secure_store("s", "k", bad[i]));
        CHECK(!core.secure_load(bad[i], "k") && !core.secure_load("s", bad[i]));
        CHECK(core.secure_delete(bad[i], "k") && core.secure_delete("s", bad[i]));
    }
    CHECK(core.secure_store("s", "k", longest) == 0);
    char *loaded = core.secure_load("s", "k");
    CHECK(loaded && strcmp(loaded, longest) == 0);
    free(loaded);
    CHECK(core.secure_delete("s", "k") == 0);

    CHECK(!core.sign_bytes(DEVICE, NULL, 1) && !core.sign_bytes(DEVICE, MESSAGE, -1) && !core.sign_bytes(DEVICE, MESSAGE, INTPTR_MAX));
    CHECK(!core.sign_bytes(DEVICE, MESSAGE, INTPTR_MIN) && !core.sign_bytes(DEVICE, MESSAGE, (intptr_t)1 << 32));
    const intptr_t lengths[] = {0, 31, -1, INTPTR_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char *made = core.get_attestation(DEVICE, HASH, lengths[i]);
        CHECK(made && strstr(made, "{\"format\":\"none\",\"blob\":\"\",\"reason\":\"") == made);
        free(made);
    }
    /* Names like those of files or of formats are not special. */
    CHECK(core.key_exists("../x") == 0 && core.key_exists("%n%s") == 0 && core.delete_key("../x") == 0);
}

static void leaves(void) {
    for (int time = 0; time < 2; time++) {
        CHECK(core.delete_key(DEVICE) == 0 && core.secure_delete("consent_tokens", "user") == 0);
    }
    CHECK(core.key_exists(DEVICE) == 0 && !core.secure_load("consent_tokens", "user"));
    cannot_sign();
}

/* A Java thread with a pending exception. */
static void on_a_thread_of_java(void) {
    signs();
    CHECK(!(*env)->ExceptionCheck(env));
    jclass failure = (*env)->FindClass(env, "java/lang/IllegalStateException");
    CHECK(failure && (*env)->ThrowNew(env, failure, "the caller's own") == 0);
    signs();
    CHECK((*env)->ExceptionCheck(env));
    jthrowable pending = (*env)->ExceptionOccurred(env);
    (*env)->ExceptionClear(env);
    CHECK((*env)->IsInstanceOf(env, pending, failure));
    (*env)->DeleteLocalRef(env, pending);
    (*env)->DeleteLocalRef(env, failure);
    /* The thread is still attached, and holds no more references than before: CheckJNI counts them. */
    for (int i = 0; i < 100; i++) CHECK(core.key_exists("") == 0 && core.secure_delete("s", "none") == 0);
}

int main(int count, char **arguments) {
    CHECK(count > 3);
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    look_up(library);
    nothing_works();

    JavaVMOption options[16];
    CHECK(count - 3 <= 16);
    for (int i = 3; i < count; i++) options[i - 3] = (JavaVMOption){arguments[i], NULL};
    JavaVMInitArgs initial = {JNI_VERSION_1_6, count - 3, options, JNI_FALSE};
    void *pointer = NULL;
    CHECK(JNI_CreateJavaVM(&vm, &pointer, &initial) == JNI_OK);
    env = pointer;
    jclass local = (*env)->FindClass(env, "ai/synheart/auth/runtime/RuntimePhone");
    check_java();
    phone = (*env)->NewGlobalRef(env, local);
    (*env)->DeleteLocalRef(env, local);
    nothing_works();

    CHECK(is_true("start", arguments[2]));
    /* Opens the loaded library by its bare name, as DynamicLibrary.open does. */
    void *again = dlopen("libsynheart_native_crypto.so", RTLD_NOW);
    CHECK(again == library);

    on_a_thread(opens_its_storage);
    on_threads(8, generates);
    on_threads(8, signs);
    CHECK(verifies(key, MESSAGE, sizeof MESSAGE, signature));
    CHECK(!verifies(key, MESSAGE, sizeof MESSAGE - 1, signature));
    on_a_thread(signs_nothing);
    CHECK(verifies(key, MESSAGE, 0, signature));
    on_a_thread(attests);
    CHECK(is_true("isToken", attestation));
    happens("no Google");
    on_a_thread(attests);
    CHECK(strcmp(attestation, "{\"format\":\"none\",\"blob\":\"\",\"reason\":\"UNSUPPORTED\"}") == 0);
    happens("Google");
    on_a_thread(keeps_secrets);
    on_threads(4, has_its_secret);
    CHECK(has_alias(ALIAS));
    on_a_thread_of_java();

    /* A temporary failure loses nothing. */
    happens("keystore fails");
    on_a_thread(cannot_see);
    CHECK(is_true("hasLogged", "secure_load: "));
    happens("keystore works");
    on_a_thread(generates);
    on_a_thread(has_its_secret);
    happens("reboot");
    on_a_thread(signs_without_its_storage);
    CHECK(verifies(key, MESSAGE, sizeof MESSAGE, signature));
    happens("unlock");
    on_a_thread(has_its_secret);

    /* A permanently lost key is replaced. */
    static const char *const losses[] = {"key lost", "key corrupted", "key invalidated"};
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        happens(losses[i]);
        char lost[sizeof key];
        strcpy(lost, key);
        on_a_thread(starts_over);
        CHECK(strcmp(lost, key) != 0 && verifies(key, MESSAGE, sizeof MESSAGE, signature));
    }
    on_a_thread(has_its_secret);

    on_a_thread(survives_hostile_input);
    on_a_thread(leaves);
    CHECK(!has_alias(ALIAS));
    CHECK((*env)->CallStaticIntMethod(env, phone, method("attachedThreads", "()I")) == 0);
    check_java();
    CHECK(!is_true("hasLogged", DEVICE) && !is_true("hasLogged", "consent_tokens"));

    (*env)->DeleteGlobalRef(env, phone);
    CHECK(dlclose(again) == 0 && dlclose(library) == 0);
    CHECK((*vm)->DestroyJavaVM(vm) == JNI_OK);
    puts("ok");
    return 0;
}

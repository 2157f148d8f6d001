package ai.synheart.standins;

import android.os.Build;
import android.security.KeyStoreException;
import android.security.StandInKeyStoreExceptions;
import android.security.StandInKeyStoreExceptions.Provisioning;
import android.security.keystore.KeyGenParameterSpec;
import android.security.keystore.KeyProperties;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.SecureRandom;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Stands in for the Keystore's daemon and hardware. Each key is a file. Tests make calls fail with the daemon's own codes: those of
 * android.system.keystore2.ResponseCode are positive, those of KeyMint's ErrorCode are negative.
 */
public final class KeystoreDaemon {
    public static final int LOCKED = 2, UNINITIALIZED = 3, SYSTEM_ERROR = 4, PERMISSION_DENIED = 6, KEY_NOT_FOUND = 7, VALUE_CORRUPTED = 8,
        KEY_PERMANENTLY_INVALIDATED = 17, OUT_OF_KEYS = 22, OUT_OF_KEYS_REQUIRES_SYSTEM_UPGRADE = 23, OUT_OF_KEYS_PENDING_INTERNET = 24,
        OUT_OF_KEYS_TRANSIENT = 25, OUT_OF_KEYS_PERMANENT = 26, GET_ATTESTATION_APPLICATION_ID_FAILED = 27, INFO_NOT_AVAILABLE = 28;
    public static final int KEY_USER_NOT_AUTHENTICATED = -26, INVALID_OPERATION_HANDLE = -28, TOO_MANY_OPERATIONS = -31, INVALID_KEY_BLOB = -33,
        SECURE_HW_BUSY = -48, SECURE_HW_COMMUNICATION_FAILED = -49, ATTESTATION_KEYS_NOT_PROVISIONED = -79, HARDWARE_TYPE_UNAVAILABLE = -68,
        DEVICE_LOCKED = -72, UNIMPLEMENTED = -100, UNKNOWN_ERROR = -1000,
        INVALID_INPUT_LENGTH = -21, KEY_RATE_LIMIT_EXCEEDED = -54;

    /** The kinds of calls to the daemon. */
    public enum Call { GET, GENERATE, DELETE, SIGN_START, SIGN_FINISH, CIPHER_START, CIPHER_FINISH }

    /** How the device attests keys. */
    public enum Attestation {
        /** The hardware returns a chain. */
        HARDWARE,
        /** The chain leads to a software root, as on an emulator. */
        SOFTWARE,
        /** The key gets only a self-signed certificate, as on Android 8 with old hardware. */
        NONE,
        /** The hardware refuses to create a key with a challenge. */
        REFUSED
    }

    /** A key. */
    static final class Entry {
        final String alias;
        final boolean isStrongBox;
        /** PKCS #8 of an EC key, or the bytes of an AES key. */
        final byte[] secret;
        final List<byte[]> chain;

        Entry(String alias, boolean isStrongBox, byte[] secret, List<byte[]> chain) {
            this.alias = alias;
            this.isStrongBox = isStrongBox;
            this.secret = secret;
            this.chain = chain;
        }
    }

    private static final class Fault {
        final int code;
        final Provisioning provisioning;

        Fault(int code, Provisioning provisioning) {
            this.code = code;
            this.provisioning = provisioning;
        }

        /** Whether only attestation can fail with this code: the creation of a key without attestation still succeeds. */
        boolean isOfAttestation() {
            return code >= OUT_OF_KEYS && code <= GET_ATTESTATION_APPLICATION_ID_FAILED || code == ATTESTATION_KEYS_NOT_PROVISIONED;
        }
    }

    private final Path folder;
    private final String packageName;
    /** Attests the keys of this device. */
    public final KeyAttestor attestor;
    /** Whether there is a StrongBox. */
    public volatile boolean hasStrongBox = true;
    /** How the device attests keys. */
    public volatile Attestation attestation = Attestation.HARDWARE;
    /** Runs in each call that a test makes fail, just before the failure. */
    public volatile Runnable duringFailure = () -> {};
    private final Map<Call, Deque<Fault>> next = new HashMap<>();
    private final Map<Call, Fault> always = new HashMap<>();
    private final Map<Call, CountDownLatch> held = new HashMap<>();
    private final Map<Call, Integer> counts = new HashMap<>();
    private final Set<String> invalidated = new HashSet<>();
    private final Random jitter = new Random(1);
    private int binder, tee, strongBox;

    KeystoreDaemon(Path folder, String packageName) throws IOException {
        this.folder = folder;
        this.packageName = packageName;
        Files.createDirectories(folder);
        attestor = new KeyAttestor(folder.resolve("attestation.key"));
    }

    /** Makes the next calls of this kind fail with these codes, in this order. Code 0 lets one call succeed. */
    public synchronized void failNext(Call call, int... codes) {
        for (int code : codes) next.computeIfAbsent(call, key -> new ArrayDeque<>()).add(new Fault(code, Provisioning.REFUSED));
    }

    /** Makes every call of this kind fail with this code. Code 0 ends the failures. */
    public synchronized void failAlways(Call call, int code) { failAlways(call, code, Provisioning.REFUSED); }

    /** Makes every call of this kind fail with this code. {@code provisioning} is the remote provisioning status of code 22. */
    public synchronized void failAlways(Call call, int code, Provisioning provisioning) {
        if (code == 0) always.remove(call); else always.put(call, new Fault(code, provisioning));
    }

    /** Makes every call fail with this code. Code 0 ends the failures. */
    public void failEverything(int code) { for (Call call : Call.values()) failAlways(call, code); }

    /** Removes every failure and every wait that a test has set for calls. */
    public synchronized void works() {
        next.clear();
        always.clear();
        held.clear();
    }

    /** Makes calls of this kind wait until the latch opens. Null: they no longer wait. */
    public synchronized void hold(Call call, CountDownLatch latch) {
        if (latch == null) held.remove(call); else held.put(call, latch);
    }

    /**
     * Sets how long calls take from now on, for measurements. Every call takes the time of binder, Android's interprocess
     * communication: at least half of the mean, and rarely several times the mean. Creating a key and operations with it
     * also take the time of the key's hardware.
     *
     * @param binder the mean time of binder, in milliseconds
     * @param tee the time of the TEE, in milliseconds
     * @param strongBox the time of the StrongBox, in milliseconds
     */
    public synchronized void slow(int binder, int tee, int strongBox) {
        this.binder = binder;
        this.tee = tee;
        this.strongBox = strongBox;
    }

    private void takeBinder() throws KeyStoreException {
        double milliseconds;
        synchronized (this) { milliseconds = binder == 0 ? 0 : binder * (0.5 - 0.5 * Math.log(1 - jitter.nextDouble())); }
        take(milliseconds);
    }

    private void takeHardware(boolean isStrongBox) throws KeyStoreException {
        int milliseconds;
        synchronized (this) { milliseconds = isStrongBox ? strongBox : tee; }
        take(milliseconds);
    }

    private void take(double milliseconds) throws KeyStoreException {
        if (milliseconds == 0) return;
        try { TimeUnit.NANOSECONDS.sleep((long) (milliseconds * 1e6)); } catch (InterruptedException error) { throw failure(SYSTEM_ERROR); }
    }

    /** The number of all calls. */
    public synchronized int count() { return counts.values().stream().mapToInt(Integer::intValue).sum(); }

    /** The number of calls of this kind. */
    public synchronized int count(Call call) { return counts.getOrDefault(call, 0); }

    /** The names of all keys. */
    public List<String> aliases() {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).filter(name -> name.endsWith(".entry"))
                .map(name -> new String(Base64.getUrlDecoder().decode(name.substring(0, name.length() - ".entry".length())), StandardCharsets.UTF_8))
                .sorted().collect(Collectors.toList());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Removes a key, as if the system had lost it. Does not count as a call of the app. */
    public void lose(String alias) {
        try { Files.deleteIfExists(file(alias)); } catch (IOException error) { throw new UncheckedIOException(error); }
    }

    /** Makes a key unusable: it is still found, but the hardware refuses its blob, as after a restore. */
    public void corrupt(String alias) {
        try {
            Entry entry = read(alias);
            write(new Entry(alias, entry.isStrongBox, new byte[0], entry.chain));
        } catch (KeyStoreException error) {
            throw new IllegalArgumentException("no such key: " + alias, error);
        }
    }

    /** Invalidates a key until a new one is created under the same name. */
    public synchronized void invalidate(String alias) { invalidated.add(alias); }

    /** Removes every key, as Android does when the user clears the credentials in the settings. */
    public void deleteEverything() { for (String alias : aliases()) lose(alias); }

    /** Whether a key is in the StrongBox; null if there is no such key. */
    public Boolean isInStrongBox(String alias) {
        try { return read(alias).isStrongBox; } catch (KeyStoreException error) { return null; }
    }

    // The calls that KeystoreProvider makes.

    void enter(Call call) throws KeyStoreException { enter(call, true); }

    private void enter(Call call, boolean isAttested) throws KeyStoreException {
        CountDownLatch latch;
        Fault fault;
        synchronized (this) {
            counts.merge(call, 1, Integer::sum);
            latch = held.get(call);
            Deque<Fault> faults = next.get(call);
            boolean isQueued = faults != null && !faults.isEmpty();
            fault = isQueued ? faults.peek() : always.get(call);
            if (fault != null && !isAttested && fault.isOfAttestation()) fault = null; else if (isQueued) faults.poll();
        }
        takeBinder();
        if (latch != null) {
            try { latch.await(); } catch (InterruptedException error) { throw failure(SYSTEM_ERROR); }
        }
        if (fault != null && fault.code != 0) duringFailure.run();
        if (fault != null && fault.code != 0) throw StandInKeyStoreExceptions.of(fault.code, message(fault.code), fault.provisioning);
    }

    Entry get(String alias) throws KeyStoreException {
        enter(Call.GET);
        synchronized (this) { if (invalidated.contains(alias)) throw failure(KEY_PERMANENTLY_INVALIDATED); }
        return read(alias);
    }

    /** Starts an operation with a key. */
    Entry start(Call call, String alias) throws KeyStoreException {
        enter(call);
        Entry entry = read(alias);
        if (entry.secret.length == 0) throw failure(INVALID_KEY_BLOB);
        takeHardware(entry.isStrongBox);
        return entry;
    }

    void delete(String alias) throws KeyStoreException {
        enter(Call.DELETE);
        if (!Files.exists(file(alias))) throw failure(KEY_NOT_FOUND);
        lose(alias);
    }

    Entry generate(KeyGenParameterSpec spec, boolean isAES) throws KeyStoreException {
        boolean isMade = false;
        try {
            enter(Call.GENERATE, spec.getAttestationChallenge() != null);
            if (spec.isStrongBoxBacked() && !hasStrongBox) throw failure(HARDWARE_TYPE_UNAVAILABLE);
            takeHardware(spec.isStrongBoxBacked());
            byte[] challenge = spec.getAttestationChallenge();
            if (challenge != null && challenge.length > 128) throw failure(INVALID_INPUT_LENGTH);
            if (challenge != null && attestation == Attestation.REFUSED) throw failure(UNIMPLEMENTED);
            Entry entry = isAES ? aes(spec) : ec(spec, challenge);
            write(entry);
            synchronized (this) { invalidated.remove(entry.alias); }
            isMade = true;
            return entry;
        } catch (GeneralSecurityException error) {
            throw failure(UNKNOWN_ERROR);
        } finally {
            // Since Android 12, a failure also deletes the key that the new one would have replaced. Here it does so in every version.
            if (!isMade) lose(spec.getKeystoreAlias());
        }
    }

    private Entry aes(KeyGenParameterSpec spec) {
        byte[] secret = new byte[32];
        new SecureRandom().nextBytes(secret);
        return new Entry(spec.getKeystoreAlias(), spec.isStrongBoxBacked(), secret, new ArrayList<>());
    }

    private Entry ec(KeyGenParameterSpec spec, byte[] challenge) throws GeneralSecurityException {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("EC", "SunEC");
        generator.initialize((ECGenParameterSpec) spec.getAlgorithmParameterSpec());
        KeyPair pair = generator.generateKeyPair();
        boolean isHardware = attestation == Attestation.HARDWARE, isSoftware = attestation == Attestation.SOFTWARE;
        List<byte[]> chain = challenge == null || !isHardware && !isSoftware
            ? List.of(attestor.selfSigned(pair))
            : attestor.attest(pair.getPublic(), challenge, packageName, isSoftware ? 0 : spec.isStrongBoxBacked() ? 2 : 1, purposes(spec));
        return new Entry(spec.getKeystoreAlias(), spec.isStrongBoxBacked(), pair.getPrivate().getEncoded(), chain);
    }

    private static int[] purposes(KeyGenParameterSpec spec) {
        return (spec.getPurposes() & KeyProperties.PURPOSE_VERIFY) != 0 ? new int[] {2, 3} : new int[] {2};
    }

    PrivateKey privateKey(String alias) throws KeyStoreException {
        try {
            return KeyFactory.getInstance("EC", "SunEC").generatePrivate(new PKCS8EncodedKeySpec(read(alias).secret));
        } catch (GeneralSecurityException error) {
            throw failure(INVALID_KEY_BLOB);
        }
    }

    static KeyStoreException failure(int code) { return StandInKeyStoreExceptions.of(code, message(code), Provisioning.REFUSED); }

    /** The message for a code. Since Android 13 it includes the daemon's own text, which may mention other failures. */
    private static String message(int code) {
        String text = text(code);
        return Build.VERSION.SDK_INT < 33 ? text
            : text + " (internal Keystore code: " + code + " message: In load_key: after a fall back from Key not found, Invalid key blob.)";
    }

    private static String text(int code) {
        switch (code) {
            case LOCKED: return "User authentication required";
            case UNINITIALIZED: return "Keystore not initialized";
            case SYSTEM_ERROR: return "System error";
            case PERMISSION_DENIED: return "Permission denied";
            case KEY_NOT_FOUND: return "Key not found";
            case VALUE_CORRUPTED: return "Key blob corrupted";
            case KEY_PERMANENTLY_INVALIDATED: return "Key permanently invalidated";
            case INVALID_KEY_BLOB: return "Invalid key blob";
            case INVALID_OPERATION_HANDLE: return "Invalid operation handle";
            case TOO_MANY_OPERATIONS: return "Too many operations";
            case KEY_USER_NOT_AUTHENTICATED: return "User not authenticated";
            case DEVICE_LOCKED: return "Device locked";
            case UNIMPLEMENTED: return "Not implemented";
            case UNKNOWN_ERROR: return "Unknown error";
            default: return String.valueOf(code);
        }
    }

    private Path file(String alias) {
        return folder.resolve(Base64.getUrlEncoder().withoutPadding().encodeToString(alias.getBytes(StandardCharsets.UTF_8)) + ".entry");
    }

    Entry read(String alias) throws KeyStoreException {
        try {
            List<String> lines = Files.readAllLines(file(alias));
            List<byte[]> chain = new ArrayList<>();
            for (String line : lines.subList(2, lines.size())) chain.add(Base64.getDecoder().decode(line));
            return new Entry(alias, lines.get(0).equals("strongbox"), Base64.getDecoder().decode(lines.get(1)), chain);
        } catch (NoSuchFileException error) {
            throw failure(KEY_NOT_FOUND);
        } catch (IOException error) {
            throw failure(SYSTEM_ERROR);
        }
    }

    private void write(Entry entry) throws KeyStoreException {
        List<String> lines = new ArrayList<>(List.of(entry.isStrongBox ? "strongbox" : "tee", Base64.getEncoder().encodeToString(entry.secret)));
        for (byte[] certificate : entry.chain) lines.add(Base64.getEncoder().encodeToString(certificate));
        try {
            Path temporary = Files.createTempFile(folder, "entry", null);
            Files.write(temporary, lines);
            Files.move(temporary, file(entry.alias), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } catch (AtomicMoveNotSupportedException error) {
            throw new UncheckedIOException(error);
        } catch (IOException error) {
            throw failure(SYSTEM_ERROR);
        }
    }
}

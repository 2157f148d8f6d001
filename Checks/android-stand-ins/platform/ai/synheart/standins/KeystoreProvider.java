package ai.synheart.standins;

import android.os.Build;
import android.security.KeyStoreException;
import android.security.StandInKeyStoreExceptions;
import android.security.keystore.KeyGenParameterSpec;
import android.security.keystore.KeyPermanentlyInvalidatedException;
import android.security.keystore.StrongBoxUnavailableException;
import android.security.keystore.UserNotAuthenticatedException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.InvalidAlgorithmParameterException;
import java.security.InvalidKeyException;
import java.security.Key;
import java.security.KeyPair;
import java.security.KeyPairGeneratorSpi;
import java.security.KeyStoreSpi;
import java.security.PrivateKey;
import java.security.Provider;
import java.security.ProviderException;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.security.Signature;
import java.security.SignatureException;
import java.security.SignatureSpi;
import java.security.UnrecoverableKeyException;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.interfaces.ECKey;
import java.security.interfaces.ECPublicKey;
import java.security.spec.AlgorithmParameterSpec;
import java.security.spec.ECParameterSpec;
import java.util.Collections;
import java.util.Date;
import java.util.Enumeration;
import java.util.List;
import javax.crypto.AEADBadTagException;
import javax.crypto.BadPaddingException;
import javax.crypto.Cipher;
import javax.crypto.CipherSpi;
import javax.crypto.IllegalBlockSizeException;
import javax.crypto.KeyGeneratorSpi;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Stands in for the provider "AndroidKeyStore", with the same exceptions. Look-ups other than {@code getKey} report every failure as an
 * absent key. {@code getKey} does so before Android 12 (API 31), if the daemon cannot be reached. The keys have no encoding.
 */
public final class KeystoreProvider extends Provider {
    static final String NAME = "AndroidKeyStore";

    KeystoreProvider() {
        super(NAME, "1", "a stand-in for Android's");
        put("KeyStore.AndroidKeyStore", Store.class.getName());
        put("KeyPairGenerator.EC", PairGenerator.class.getName());
        put("KeyGenerator.AES", SecretGenerator.class.getName());
        put("Signature.SHA256withECDSA", Signer.class.getName());
        put("Signature.SHA256withECDSA SupportedKeyClasses", HardwarePrivateKey.class.getName());
        put("Cipher.AES/GCM/NoPadding", GCM.class.getName());
        put("Cipher.AES/GCM/NoPadding SupportedKeyClasses", HardwareSecretKey.class.getName());
    }

    private static KeystoreDaemon daemon() { return StandInDevice.current().keystore; }

    /** A reference to a key in the Keystore. It holds only the alias. */
    private abstract static class HardwareKey implements Key {
        private static final long serialVersionUID = 1;
        final String alias;

        HardwareKey(String alias) { this.alias = alias; }

        @Override
        public String getFormat() { return null; }

        @Override
        public byte[] getEncoded() { return null; }
    }

    static final class HardwarePrivateKey extends HardwareKey implements PrivateKey, ECKey {
        private static final long serialVersionUID = 1;
        private final transient ECParameterSpec parameters;

        HardwarePrivateKey(String alias, ECParameterSpec parameters) {
            super(alias);
            this.parameters = parameters;
        }

        @Override
        public String getAlgorithm() { return "EC"; }

        @Override
        public ECParameterSpec getParams() { return parameters; }
    }

    static final class HardwareSecretKey extends HardwareKey implements SecretKey {
        private static final long serialVersionUID = 1;

        HardwareSecretKey(String alias) { super(alias); }

        @Override
        public String getAlgorithm() { return "AES"; }
    }

    private static Certificate certificate(byte[] encoding) {
        try {
            return CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(encoding));
        } catch (CertificateException error) {
            throw new ProviderException(error);
        }
    }

    private static Key key(KeystoreDaemon.Entry entry) {
        if (entry.chain.isEmpty()) return new HardwareSecretKey(entry.alias);
        return new HardwarePrivateKey(entry.alias, ((ECPublicKey) certificate(entry.chain.get(0)).getPublicKey()).getParams());
    }

    /** The exception that the start of an operation throws. */
    private static InvalidKeyException invalidKey(KeyStoreException error, int code) {
        switch (code) {
            case KeystoreDaemon.KEY_NOT_FOUND:
            case KeystoreDaemon.KEY_PERMANENTLY_INVALIDATED:
                return new KeyPermanentlyInvalidatedException("Key permanently invalidated", error);
            case KeystoreDaemon.LOCKED:
            case KeystoreDaemon.UNINITIALIZED:
            case KeystoreDaemon.KEY_USER_NOT_AUTHENTICATED:
                return new UserNotAuthenticatedException("User not authenticated", error);
            default:
                return new InvalidKeyException("Keystore operation failed", error);
        }
    }

    public static final class PairGenerator extends KeyPairGeneratorSpi {
        private KeyGenParameterSpec spec;

        @Override
        public void initialize(int size, SecureRandom random) { throw new IllegalArgumentException("a KeyGenParameterSpec is needed"); }

        @Override
        public void initialize(AlgorithmParameterSpec spec, SecureRandom random) throws InvalidAlgorithmParameterException {
            if (!(spec instanceof KeyGenParameterSpec)) throw new InvalidAlgorithmParameterException("not a KeyGenParameterSpec");
            this.spec = (KeyGenParameterSpec) spec;
        }

        @Override
        public KeyPair generateKeyPair() {
            try {
                KeystoreDaemon.Entry entry = daemon().generate(spec, false);
                return new KeyPair(certificate(entry.chain.get(0)).getPublicKey(), (PrivateKey) key(entry));
            } catch (KeyStoreException error) {
                int code = code(error);
                if (code == KeystoreDaemon.HARDWARE_TYPE_UNAVAILABLE) throw new StrongBoxUnavailableException("Failed to generate key pair.", error);
                // Android 12 asks its provisioner for keys, and then gives no cause.
                if (code == KeystoreDaemon.OUT_OF_KEYS && Build.VERSION.SDK_INT >= 31 && Build.VERSION.SDK_INT < 33) throw new ProviderException("Failed to provision new attestation keys.");
                if (code >= KeystoreDaemon.OUT_OF_KEYS && code <= KeystoreDaemon.OUT_OF_KEYS_PERMANENT) throw new ProviderException("Failed to provision new attestation keys.", error);
                throw new ProviderException("Failed to generate key pair.", error);
            }
        }
    }

    public static final class SecretGenerator extends KeyGeneratorSpi {
        private KeyGenParameterSpec spec;

        @Override
        protected void engineInit(SecureRandom random) { throw new UnsupportedOperationException("a KeyGenParameterSpec is needed"); }

        @Override
        protected void engineInit(int size, SecureRandom random) { throw new UnsupportedOperationException("a KeyGenParameterSpec is needed"); }

        @Override
        protected void engineInit(AlgorithmParameterSpec spec, SecureRandom random) { this.spec = (KeyGenParameterSpec) spec; }

        @Override
        protected SecretKey engineGenerateKey() {
            try {
                return (SecretKey) key(daemon().generate(spec, true));
            } catch (KeyStoreException error) {
                throw new ProviderException("Keystore key generation failed", error);
            }
        }
    }

    private static int code(KeyStoreException error) { return StandInKeyStoreExceptions.code(error); }

    public static final class Signer extends SignatureSpi {
        private String alias;
        private final ByteArrayOutputStream message = new ByteArrayOutputStream();

        @Override
        protected void engineInitSign(PrivateKey key) throws InvalidKeyException {
            if (!(key instanceof HardwarePrivateKey)) throw new InvalidKeyException("not a key of the Keystore");
            alias = ((HardwarePrivateKey) key).alias;
            message.reset();
            try {
                daemon().start(KeystoreDaemon.Call.SIGN_START, alias);
            } catch (KeyStoreException error) {
                throw invalidKey(error, code(error));
            }
        }

        @Override
        protected void engineInitVerify(PublicKey key) throws InvalidKeyException { throw new InvalidKeyException("this provider signs"); }

        @Override
        protected void engineUpdate(byte value) { message.write(value); }

        @Override
        protected void engineUpdate(byte[] bytes, int offset, int length) { message.write(bytes, offset, length); }

        @Override
        protected byte[] engineSign() throws SignatureException {
            try {
                daemon().enter(KeystoreDaemon.Call.SIGN_FINISH);
                Signature signature = Signature.getInstance("SHA256withECDSA", "SunEC");
                signature.initSign(daemon().privateKey(alias));
                signature.update(message.toByteArray());
                message.reset();
                return signature.sign();
            } catch (KeyStoreException error) {
                throw new SignatureException(error);
            } catch (GeneralSecurityException error) {
                throw new ProviderException(error);
            }
        }

        @Override
        protected boolean engineVerify(byte[] signature) throws SignatureException { throw new SignatureException("this provider signs"); }

        @Override
        @Deprecated
        protected void engineSetParameter(String name, Object value) { throw new UnsupportedOperationException(); }

        @Override
        @Deprecated
        protected Object engineGetParameter(String name) { throw new UnsupportedOperationException(); }
    }

    public static final class GCM extends CipherSpi {
        private Cipher cipher;

        @Override
        protected void engineSetMode(String mode) {}

        @Override
        protected void engineSetPadding(String padding) {}

        @Override
        protected int engineGetBlockSize() { return 16; }

        @Override
        protected int engineGetOutputSize(int length) { return length + 16; }

        @Override
        protected byte[] engineGetIV() { return cipher.getIV(); }

        @Override
        protected AlgorithmParameters engineGetParameters() { return cipher.getParameters(); }

        @Override
        protected void engineInit(int mode, Key key, SecureRandom random) throws InvalidKeyException {
            try { engineInit(mode, key, (AlgorithmParameterSpec) null, random); } catch (InvalidAlgorithmParameterException error) { throw new InvalidKeyException(error); }
        }

        @Override
        protected void engineInit(int mode, Key key, AlgorithmParameters parameters, SecureRandom random) { throw new UnsupportedOperationException(); }

        @Override
        protected void engineInit(int mode, Key key, AlgorithmParameterSpec parameters, SecureRandom random)
            throws InvalidKeyException, InvalidAlgorithmParameterException {
            if (!(key instanceof HardwareSecretKey)) throw new InvalidKeyException("not a key of the Keystore");
            if (mode == Cipher.ENCRYPT_MODE && parameters != null) throw new InvalidAlgorithmParameterException("Caller-provided IV not permitted");
            try {
                KeystoreDaemon.Entry entry = daemon().start(KeystoreDaemon.Call.CIPHER_START, ((HardwareSecretKey) key).alias);
                cipher = Cipher.getInstance("AES/GCM/NoPadding", "SunJCE");
                SecretKeySpec secret = new SecretKeySpec(entry.secret, "AES");
                if (parameters == null) cipher.init(mode, secret); else cipher.init(mode, secret, (GCMParameterSpec) parameters);
            } catch (KeyStoreException error) {
                throw invalidKey(error, code(error));
            } catch (InvalidKeyException | InvalidAlgorithmParameterException error) {
                throw error;
            } catch (GeneralSecurityException error) {
                throw new ProviderException(error);
            }
        }

        @Override
        protected void engineUpdateAAD(byte[] data, int offset, int length) { cipher.updateAAD(data, offset, length); }

        @Override
        protected byte[] engineUpdate(byte[] input, int offset, int length) { return cipher.update(input, offset, length); }

        @Override
        protected int engineUpdate(byte[] input, int offset, int length, byte[] output, int at) { throw new UnsupportedOperationException(); }

        @Override
        protected byte[] engineDoFinal(byte[] input, int offset, int length) throws BadPaddingException, IllegalBlockSizeException {
            try {
                daemon().enter(KeystoreDaemon.Call.CIPHER_FINISH);
                return input == null ? cipher.doFinal() : cipher.doFinal(input, offset, length);
            } catch (KeyStoreException error) {
                IllegalBlockSizeException failure = new IllegalBlockSizeException();
                failure.initCause(error);
                throw failure;
            } catch (AEADBadTagException error) {
                throw error;
            } catch (GeneralSecurityException error) {
                throw new ProviderException(error);
            }
        }

        @Override
        protected int engineDoFinal(byte[] input, int offset, int length, byte[] output, int at) { throw new UnsupportedOperationException(); }
    }

    public static final class Store extends KeyStoreSpi {
        @Override
        public void engineLoad(InputStream stream, char[] password) {}

        @Override
        public Key engineGetKey(String alias, char[] password) throws UnrecoverableKeyException {
            try {
                return key(daemon().get(alias));
            } catch (KeyStoreException error) {
                int code = code(error);
                if (code == KeystoreDaemon.KEY_NOT_FOUND || code == KeystoreDaemon.SYSTEM_ERROR && Build.VERSION.SDK_INT < 31) return null;
                if (code == KeystoreDaemon.KEY_PERMANENTLY_INVALIDATED) throw new UnrecoverableKeyException("User changed or deleted their auth credentials");
                UnrecoverableKeyException failure = new UnrecoverableKeyException("Failed to obtain information about key");
                failure.initCause(error);
                throw failure;
            }
        }

        /** The key's entry; null after any failure. */
        private static KeystoreDaemon.Entry metadata(String alias) {
            // The caller cannot tell a failure from an absent key.
            try { return daemon().get(alias); } catch (KeyStoreException error) { return null; }
        }

        @Override
        public Certificate engineGetCertificate(String alias) {
            KeystoreDaemon.Entry entry = metadata(alias);
            return entry == null || entry.chain.isEmpty() ? null : certificate(entry.chain.get(0));
        }

        @Override
        public Certificate[] engineGetCertificateChain(String alias) {
            KeystoreDaemon.Entry entry = metadata(alias);
            return entry == null || entry.chain.isEmpty() ? null : entry.chain.stream().map(KeystoreProvider::certificate).toArray(Certificate[]::new);
        }

        @Override
        public boolean engineContainsAlias(String alias) { return metadata(alias) != null; }

        @Override
        public boolean engineIsKeyEntry(String alias) { return metadata(alias) != null; }

        @Override
        public boolean engineIsCertificateEntry(String alias) { return false; }

        @Override
        public void engineDeleteEntry(String alias) throws java.security.KeyStoreException {
            try {
                daemon().delete(alias);
            } catch (KeyStoreException error) {
                if (code(error) != KeystoreDaemon.KEY_NOT_FOUND) throw new java.security.KeyStoreException("Failed to delete entry: " + alias, error);
            }
        }

        @Override
        public Enumeration<String> engineAliases() {
            try {
                daemon().enter(KeystoreDaemon.Call.GET);
                return Collections.enumeration(daemon().aliases());
            } catch (KeyStoreException error) {
                return Collections.enumeration(List.of());
            }
        }

        @Override
        public int engineSize() { return Collections.list(engineAliases()).size(); }

        @Override
        public Date engineGetCreationDate(String alias) { throw new UnsupportedOperationException(); }

        @Override
        public String engineGetCertificateAlias(Certificate certificate) { throw new UnsupportedOperationException(); }

        @Override
        public void engineSetKeyEntry(String alias, Key key, char[] password, Certificate[] chain) { throw new UnsupportedOperationException(); }

        @Override
        public void engineSetKeyEntry(String alias, byte[] key, Certificate[] chain) { throw new UnsupportedOperationException(); }

        @Override
        public void engineSetCertificateEntry(String alias, Certificate certificate) { throw new UnsupportedOperationException(); }

        @Override
        public void engineStore(OutputStream stream, char[] password) { throw new UnsupportedOperationException(); }
    }
}

import android.security.keystore.KeyGenParameterSpec;
import android.security.keystore.StrongBoxUnavailableException;
import java.io.File;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.security.Key;
import java.security.KeyPair;
import java.security.KeyPairGeneratorSpi;
import java.security.KeyStore;
import java.security.KeyStoreException;
import java.security.KeyStoreSpi;
import java.security.PrivateKey;
import java.security.Provider;
import java.security.ProviderException;
import java.security.SecureRandom;
import java.security.UnrecoverableKeyException;
import java.security.cert.Certificate;
import java.security.spec.AlgorithmParameterSpec;
import java.util.Date;
import java.util.Enumeration;

/** A provider "AndroidKeyStore": keys of keytool's in a PKCS #12 file, no StrongBox. */
public final class AndroidKeyStore extends Provider {
    private static final char[] PASSWORD = "changeit".toCharArray();
    static File file;
    static KeyStore keys;
    static volatile byte[] challenge;
    static volatile boolean areLost;

    AndroidKeyStore(File file) throws Exception {
        super("AndroidKeyStore", "1", "a stand-in");
        AndroidKeyStore.file = file;
        keys = KeyStore.getInstance("PKCS12");
        keys.load(null, PASSWORD);
        put("KeyStore.AndroidKeyStore", Store.class.getName());
        put("KeyPairGenerator.EC", Generator.class.getName());
    }

    public static final class Generator extends KeyPairGeneratorSpi {
        private KeyGenParameterSpec spec;

        @Override
        public void initialize(AlgorithmParameterSpec spec, SecureRandom random) { this.spec = (KeyGenParameterSpec) spec; }

        @Override
        public void initialize(int size, SecureRandom random) { throw new UnsupportedOperationException(); }

        @Override
        public KeyPair generateKeyPair() {
            if (spec.isStrongBoxBacked()) throw new StrongBoxUnavailableException();
            try {
                String alias = spec.getKeystoreAlias();
                if (keys.containsAlias(alias)) keys.deleteEntry(alias);
                save();
                Process keytool = new ProcessBuilder(
                        System.getProperty("java.home") + "/bin/keytool", "-genkeypair", "-alias", alias, "-keyalg", "EC",
                        "-groupname", "secp256r1", "-dname", "CN=device", "-storetype", "PKCS12", "-keystore", file.getPath(),
                        "-storepass", "changeit")
                    .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
                if (keytool.waitFor() != 0) throw new ProviderException("keytool");
                try (FileInputStream input = new FileInputStream(file)) { keys.load(input, PASSWORD); }
                if (spec.getAttestationChallenge() != null) challenge = spec.getAttestationChallenge();
                return new KeyPair(keys.getCertificate(alias).getPublicKey(), (PrivateKey) keys.getKey(alias, PASSWORD));
            } catch (Exception error) {
                throw new ProviderException(error);
            }
        }
    }

    private static void save() throws Exception {
        try (OutputStream output = new java.io.FileOutputStream(file)) { keys.store(output, PASSWORD); }
    }

    public static final class Store extends KeyStoreSpi {
        private interface Call<Value> { Value run() throws KeyStoreException; }

        private static <Value> Value call(Call<Value> call) {
            try { return call.run(); } catch (KeyStoreException error) { throw new ProviderException(error); }
        }

        @Override
        public Key engineGetKey(String alias, char[] password) throws UnrecoverableKeyException {
            if (areLost) throw new UnrecoverableKeyException();
            try { return keys.getKey(alias, PASSWORD); } catch (Exception error) { throw new ProviderException(error); }
        }

        @Override
        public Certificate[] engineGetCertificateChain(String alias) { return call(() -> keys.getCertificateChain(alias)); }

        @Override
        public Certificate engineGetCertificate(String alias) { return call(() -> keys.getCertificate(alias)); }

        @Override
        public void engineDeleteEntry(String alias) throws KeyStoreException { keys.deleteEntry(alias); }

        @Override
        public boolean engineContainsAlias(String alias) { return call(() -> keys.containsAlias(alias)); }

        @Override
        public void engineLoad(InputStream stream, char[] password) {}

        @Override
        public int engineSize() { return call(keys::size); }

        @Override
        public Enumeration<String> engineAliases() { return call(keys::aliases); }

        @Override
        public boolean engineIsKeyEntry(String alias) { return engineContainsAlias(alias); }

        @Override
        public boolean engineIsCertificateEntry(String alias) { return false; }

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

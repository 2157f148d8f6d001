package android.net;

public abstract class Uri {
    private Uri() {}

    public static Uri parse(String text) {
        return new Uri() {
            @Override
            public String toString() { return text; }
        };
    }
}

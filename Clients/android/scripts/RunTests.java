import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.runner.Computer;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.Result;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Runs the classes of a folder whose names end in Test. Exits 1 if a test failed, 2 if none ran. */
public final class RunTests {
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        List<String> wanted = new ArrayList<>();
        for (int i = 1; i < arguments.length; i++) if (!arguments[i].equals("--filter")) wanted.add(arguments[i]);
        Class<?>[] classes;
        try (Stream<Path> files = Files.walk(folder)) {
            classes = files.map(file -> folder.relativize(file).toString().replace('/', '.'))
                .filter(name -> name.endsWith("Test.class") && !name.contains("$")).sorted()
                .map(name -> load(name.substring(0, name.length() - ".class".length()))).toArray(Class<?>[]::new);
        }
        Request request = Request.classes(new Computer(), classes);
        if (!wanted.isEmpty()) request = request.filterWith(new Wanted(wanted));
        JUnitCore core = new JUnitCore();
        core.addListener(new Lines());
        Result result = core.run(request);
        for (Failure failure : result.getFailures()) System.out.println("\nFailed: " + name(failure.getDescription()) + "\n" + trace(failure));
        System.out.printf("%d tests, %d failed, %d ignored, %.1f s%n", result.getRunCount(), result.getFailureCount(),
            result.getIgnoreCount(), result.getRunTime() / 1000.0);
        System.exit(!result.wasSuccessful() ? 1 : result.getRunCount() == 0 ? 2 : 0);
    }

    private static Class<?> load(String name) {
        try { return Class.forName(name, false, RunTests.class.getClassLoader()); } catch (ClassNotFoundException error) { throw new IllegalStateException(error); }
    }

    static String name(Description test) {
        return test.getTestClass() == null ? test.getDisplayName() : test.getTestClass().getSimpleName() + ": " + test.getMethodName();
    }

    /** The first 60 lines of the stack trace, without JUnit's own frames. */
    private static String trace(Failure failure) {
        return failure.getTrace().lines().filter(line -> !line.startsWith("\tat org.junit.") && !line.contains("jdk.internal.reflect"))
            .limit(60).collect(Collectors.joining("\n"));
    }

    private static final class Wanted extends Filter {
        private final List<String> parts;

        Wanted(List<String> parts) { this.parts = parts; }

        @Override
        public boolean shouldRun(Description test) {
            if (test.isTest()) return parts.stream().anyMatch(name(test)::contains);
            return test.getChildren().stream().anyMatch(this::shouldRun);
        }

        @Override
        public String describe() { return String.join(", ", parts); }
    }

    /** Prints a line for each test when it has ended. */
    private static final class Lines extends RunListener {
        private long start;
        private boolean failed;

        @Override
        public void testStarted(Description test) {
            start = System.nanoTime();
            failed = false;
        }

        @Override
        public void testFailure(Failure failure) { failed = true; }

        @Override
        public void testFinished(Description test) {
            System.out.printf("%s %s (%.2f s)%n", failed ? "✘" : "✔", name(test), (System.nanoTime() - start) / 1e9);
        }
    }
}

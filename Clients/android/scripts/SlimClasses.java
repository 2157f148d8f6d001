import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jetbrains.org.objectweb.asm.AnnotationVisitor;
import org.jetbrains.org.objectweb.asm.ClassReader;
import org.jetbrains.org.objectweb.asm.ClassVisitor;
import org.jetbrains.org.objectweb.asm.ClassWriter;
import org.jetbrains.org.objectweb.asm.FieldVisitor;
import org.jetbrains.org.objectweb.asm.Label;
import org.jetbrains.org.objectweb.asm.MethodVisitor;
import org.jetbrains.org.objectweb.asm.Opcodes;

/**
 * Copies class files without what an app cannot use: SlimClasses FROM TO PUBLIC-CLASS…
 *
 * <p>All classes lose what only a debugger reads: names of local variables, the map of inlined lines, and the coroutines' debug
 * metadata. Line numbers stay, for stack traces. javac does the same with -g:source,lines; kotlinc has no such option.
 *
 * <p>Classes that are not public in Kotlin lose what only a compiler or reflection reads: Kotlin's metadata, generic signatures,
 * annotations, and the list of inner classes. They become synthetic, so that compilers of Kotlin and of Java do not see them.
 */
public final class SlimClasses {
    private static final int API = Opcodes.API_VERSION;

    public static void main(String[] arguments) throws IOException {
        Path from = Path.of(arguments[0]), to = Path.of(arguments[1]);
        Set<String> visible = new HashSet<>(Arrays.asList(arguments).subList(2, arguments.length));
        List<Path> files;
        try (Stream<Path> walk = Files.walk(from)) { files = walk.filter(Files::isRegularFile).collect(Collectors.toList()); }
        for (Path file : files) {
            Path target = to.resolve(from.relativize(file));
            Files.createDirectories(target.getParent());
            byte[] content = Files.readAllBytes(file);
            Files.write(target, file.toString().endsWith(".class") ? slim(content, visible) : content);
        }
    }

    private static byte[] slim(byte[] code, Set<String> visible) {
        ClassReader reader = new ClassReader(code);
        ClassWriter writer = new ClassWriter(0);
        boolean isVisible = visible.contains(reader.getClassName().replace('/', '.'));
        reader.accept(isVisible ? new WithoutDebugging(writer) : new Internal(new WithoutDebugging(writer)), 0);
        return writer.toByteArray();
    }

    private static final class WithoutDebugging extends ClassVisitor {
        WithoutDebugging(ClassVisitor next) { super(API, next); }

        @Override
        public void visitSource(String source, String debug) { super.visitSource(source, null); }

        @Override
        public AnnotationVisitor visitAnnotation(String descriptor, boolean isVisible) {
            return descriptor.equals("Lkotlin/coroutines/jvm/internal/DebugMetadata;") ? null : super.visitAnnotation(descriptor, isVisible);
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
            return new MethodVisitor(API, super.visitMethod(access, name, descriptor, signature, exceptions)) {
                @Override
                public void visitLocalVariable(String name, String descriptor, String signature, Label start, Label end, int index) {}
            };
        }
    }

    private static final class Internal extends ClassVisitor {
        Internal(ClassVisitor next) { super(API, next); }

        @Override
        public void visit(int version, int access, String name, String signature, String parent, String[] interfaces) {
            super.visit(version, access | Opcodes.ACC_SYNTHETIC, name, null, parent, interfaces);
        }

        @Override
        public AnnotationVisitor visitAnnotation(String descriptor, boolean isVisible) { return null; }

        @Override
        public void visitInnerClass(String name, String outer, String inner, int access) {}

        @Override
        public void visitOuterClass(String owner, String name, String descriptor) {}

        @Override
        public FieldVisitor visitField(int access, String name, String descriptor, String signature, Object value) {
            return new FieldVisitor(API, super.visitField(access, name, descriptor, null, value)) {
                @Override
                public AnnotationVisitor visitAnnotation(String descriptor, boolean isVisible) { return null; }
            };
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
            return new MethodVisitor(API, super.visitMethod(access, name, descriptor, null, exceptions)) {
                @Override
                public AnnotationVisitor visitAnnotation(String descriptor, boolean isVisible) { return null; }

                @Override
                public AnnotationVisitor visitParameterAnnotation(int parameter, String descriptor, boolean isVisible) { return null; }

                @Override
                public void visitAnnotableParameterCount(int count, boolean isVisible) {}
            };
        }
    }
}

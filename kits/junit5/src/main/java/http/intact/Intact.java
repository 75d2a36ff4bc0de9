package http.intact;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Tests that fail when the code under test wastes HTTP connections. They run under {@code intact watch --windows -- mvn test}, which
 * records their connections and judges each window.
 */
public final class Intact {
    private static final String VARIABLE = "INTACT_CONTROL";

    private Intact() {}

    /** A part of a test. */
    @FunctionalInterface
    public interface Block {
        /** Runs it. */
        void run() throws Exception;
    }

    /** No window can be opened, so nothing was judged. */
    public static final class NotWatched extends IllegalStateException {
        private static final long serialVersionUID = 1;

        NotWatched(String message) {
            super(message);
        }
    }

    /** Judges what the process, and processes that it starts, do within the block, by one requirement. */
    public static void expect(String requirement, Block block) throws Exception {
        expect(List.of(requirement), block);
    }

    /**
     * Judges what the process, and processes that it starts, do within the block. Requirements such as {@code avoidable == 0} must
     * hold; {@code fail-on warning} or {@code fail-on error} is the least severity of a finding that fails the test. A block that
     * throws is not judged.
     *
     * @throws AssertionError with the findings
     * @throws NotWatched without {@code intact watch --windows}, or where the window is refused
     */
    public static void expect(List<String> requirements, Block block) throws Exception {
        String name = caller();
        try (Control control = Control.open(System.getenv(VARIABLE))) {
            String lines = requirements.stream()
                    .map(Intact::line)
                    .map(one -> one.startsWith("fail-on ") ? one : "require " + one)
                    .collect(Collectors.joining("\n", "name " + line(name) + "\n", "\n\n"));
            control.request(lines, "open", name);
            block.run();
            control.request("end\n", "passed", name);
        }
    }

    private static String caller() {
        return StackWalker.getInstance()
                .walk(frames -> frames.filter(frame -> !frame.getClassName().equals(Intact.class.getName()))
                        .findFirst()
                        .map(frame -> frame.getClassName() + "." + frame.getMethodName())
                        .orElse("a window"));
    }

    private static String line(String text) {
        return text.strip().replaceAll("\\s+", " ");
    }

    /** The connection to intact. */
    static final class Control implements AutoCloseable {
        private final SocketChannel channel;
        private final BufferedReader replies;

        private Control(SocketChannel channel) {
            this.channel = channel;
            this.replies = new BufferedReader(
                    new InputStreamReader(Channels.newInputStream(channel), StandardCharsets.UTF_8));
        }

        static Control open(String path) {
            if (path == null || path.isEmpty()) {
                throw new NotWatched(
                        VARIABLE + " is not set: run the tests as `intact watch --windows -- mvn test`");
            }
            try {
                return new Control(SocketChannel.open(UnixDomainSocketAddress.of(path)));
            } catch (IOException error) {
                throw new NotWatched("intact does not listen on " + path + ": " + error.getMessage());
            }
        }

        /** Sends lines and reads a reply: a word on a line; except for {@code open}, a text follows until the end. */
        void request(String text, String wanted, String name) throws IOException {
            ByteBuffer bytes = ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
            while (bytes.hasRemaining()) {
                channel.write(bytes);
            }
            String word = replies.readLine();
            if (wanted.equals(word)) {
                return;
            }
            String rest = replies.lines().collect(Collectors.joining("\n"));
            if ("failed".equals(word)) {
                throw new AssertionError("intact: " + name + " does not pass\n" + rest);
            }
            throw new NotWatched("intact: " + (rest.isEmpty() ? "the connection to intact ended" : rest));
        }

        @Override
        public void close() throws IOException {
            channel.close();
        }
    }
}

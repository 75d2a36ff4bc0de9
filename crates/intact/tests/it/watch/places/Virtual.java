// Opens connections in virtual threads: `// CASE=N` says how many a line opens.
import java.net.Socket;

public class Virtual {
    static void open(int port) {
        try (Socket one = new Socket("127.0.0.1", port)) { // virtual=2
            one.getOutputStream().write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".getBytes());
            while (one.getInputStream().read() >= 0) {}
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    public static void main(String[] words) throws Exception {
        for (int nth = 0; nth < 2; nth++) Thread.ofVirtual().start(() -> open(Integer.parseInt(words[0]))).join();
    }
}

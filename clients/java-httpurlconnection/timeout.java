// snippet
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
// end

import java.net.URI;

final class Program implements Driver.Client {
    static final int timeoutMs = (int) Driver.timeoutMs();

    // snippet
    static void limit(HttpURLConnection connection) {
        connection.setConnectTimeout(timeoutMs);
        connection.setReadTimeout(timeoutMs); // between two reads
    }

    static int read(HttpURLConnection connection) throws IOException {
        int status = connection.getResponseCode();
        try (InputStream input = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
            input.readAllBytes(); // of errors too
        }
        return status;
    }
    // end

    @Override
    public int request(String method, String url, String body) throws Exception {
        return read(open(method, url, body));
    }

    @Override
    public int unread(String url) throws Exception {
        return open("GET", url, null).getResponseCode();
    }

    private static HttpURLConnection open(String method, String url, String body) throws Exception {
        HttpURLConnection connection = (HttpURLConnection) URI.create(url).toURL().openConnection();
        connection.setRequestMethod(method);
        limit(connection);
        if (body != null) {
            connection.setDoOutput(true);
            connection.getOutputStream().write(body.getBytes());
        }
        return connection;
    }

    @Override
    public String skills() {
        return "pause,concurrent,post,status,unread";
    }
}

import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;

final class Program implements Driver.Client {
    // snippet
    // int status = connection.getResponseCode();
    // if (status < 400) connection.getInputStream().readAllBytes(); // the error's body is left
    // end

    @Override
    public int request(String method, String url, String body) throws Exception {
        HttpURLConnection connection = open(method, url, body);
        int status = connection.getResponseCode();
        if (status < 400) {
            try (InputStream input = connection.getInputStream()) {
                input.readAllBytes();
            }
        }
        return status;
    }

    private static HttpURLConnection open(String method, String url, String body) throws Exception {
        HttpURLConnection connection = (HttpURLConnection) URI.create(url).toURL().openConnection();
        connection.setRequestMethod(method);
        if (body != null) {
            connection.setDoOutput(true);
            connection.getOutputStream().write(body.getBytes());
        }
        return connection;
    }

    @Override
    public String skills() {
        return "pause,concurrent,post,status";
    }
}

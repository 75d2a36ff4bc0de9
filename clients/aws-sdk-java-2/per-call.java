// snippet
import java.net.URI;
import software.amazon.awssdk.services.s3.S3Client;
// end

import java.util.List;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.model.S3Exception;

final class Program implements Driver.Client {
    // snippet
    // as in a handler that makes its client
    static int handle(URI uri, String bucket, String key) {
        try (S3Client client = make(uri.getScheme() + "://" + uri.getAuthority())) {
            client.getObjectAsBytes(get -> get.bucket(bucket).key(key));
            return 200;
        }
    }
    // end

    private static S3Client make(String endpoint) {
        return S3Client.builder()
            .endpointOverride(URI.create(endpoint))
            .region(Region.US_EAST_1)
            .forcePathStyle(true)
            .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("x", "x")))
            .build();
    }

    @Override
    public int request(String method, String url, String body) {
        URI uri = URI.create(url);
        String[] parts = uri.getPath().substring(1).split("/", 2);
        try {
            return handle(uri, parts[0], parts[1]);
        } catch (S3Exception error) {
            return error.statusCode();
        }
    }

    @Override
    public String skills() {
        return "pause,concurrent,status";
    }

    @Override
    public List<String> jars() {
        return List.of("s3");
    }
}

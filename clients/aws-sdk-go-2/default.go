package main

// snippet
import "github.com/aws/aws-sdk-go-v2/service/s3"

// end

import (
	"context"
	"io"
	"net/url"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// snippet
// one client for all calls, nothing set
func settings(*s3.Options) {}

// end

func newClient(endpoint string) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(endpoint),
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("x", "x", ""),
		UsePathStyle: true,
	}, settings)
}

var clients = map[string]*s3.Client{}

func clientOf(endpoint string) *s3.Client {
	if clients[endpoint] == nil {
		clients[endpoint] = newClient(endpoint)
	}
	return clients[endpoint]
}

func send(address string) (*s3.GetObjectOutput, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(parsed.Path, "/"), "/")
	lock.Lock()
	s3Client := clientOf(parsed.Scheme + "://" + parsed.Host)
	lock.Unlock()
	return s3Client.GetObject(context.Background(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
}

var lock sync.Mutex

func do(_, address string) (int, error) {
	output, err := send(address)
	if err != nil {
		return 0, err
	}
	defer output.Body.Close()
	_, err = io.Copy(io.Discard, output.Body)
	return 200, err
}

func unread(address string) (int, error) {
	output, err := send(address)
	if err != nil {
		return 0, err
	}
	return 200, output.Body.Close()
}

var client = Client{
	Do: do, Unread: unread, GetOnly: true, OwnService: true,
	Modules: []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/aws-sdk-go-v2/service/s3"},
}

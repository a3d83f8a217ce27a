/// The interface of libgradus_grpc.so: bytes asked and bytes answered over gRPC, by plain functions without exceptions,
/// so that it fits every build of the library. Questions may be answered late, from any thread.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gradus {

/// Null where there is none. Certificates are texts in PEM.
struct GrpcCredentials {
  const char *token, *certificate, *key, *authority;
};

struct GrpcServerSettings {
  GrpcCredentials credentials;
  int most_bytes;  // of a question
  void* owner;     // first argument of the functions below
  void (*asked)(void* owner, std::uint64_t call, const char* bytes, std::size_t size, const char* peer);
  void (*left)(void* owner, std::uint64_t call);           // the caller has gone before there was an answer
  void (*proven)(void* owner, const char* peer);           // the peer has shown the token
  void (*refused)(void* owner, const char* peer);          // it has another token, or none
  void (*handshake_failed)(void* owner, const char* why);  // of TLS, with an unknown peer
};

struct GrpcClientSettings {
  const char* address;
  GrpcCredentials credentials;
  int most_bytes;  // of an answer
};

/// `unconnected` is late, too, as there is no connection yet.
enum class GrpcResult : int { answered, late, unconnected, unreachable, refused, failed };

struct GrpcTable {
  static constexpr std::uint32_t current = 5;
  std::uint32_t version;
  /// Makes a server for connections handed to it; null on failure, with the reason in `why`.
  void* (*serve)(const GrpcServerSettings* settings, char* why, std::size_t why_size);
  /// Hands over an accepted connection, which the server owns from now on.
  void (*take)(void* server, int descriptor);
  void (*answer)(void* server, std::uint64_t call, const char* bytes, std::size_t size);
  /// Answers have this many milliseconds to arrive.
  void (*stop)(void* server, int milliseconds);
  /// A client, which connects when it first asks.
  void* (*connect)(const GrpcClientSettings* settings);
  /// Waits for the answer; `awaits`: for the server, too, which else is `unreachable` at once. Several threads may ask.
  /// `why` is also set for `unconnected`; empty if unknown.
  GrpcResult (*ask)(void* client, const char* bytes, std::size_t size, int milliseconds, int awaits, void* owner,
                    void (*answered)(void* owner, const char* bytes, std::size_t size), char* why,
                    std::size_t why_size);
  /// Pending and later calls of `ask` return `failed`.
  void (*cancel)(void* client);
  void (*disconnect)(void* client);
};

}  // namespace gradus

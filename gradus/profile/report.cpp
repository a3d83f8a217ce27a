/// Reports as text and as JSON.
#include "gradus/profile/report.h"
#include <algorithm>
#include <array>
#include <iomanip>
#include <nlohmann/json.hpp>
#include "gradus/base/error.h"
#include "gradus/tensor/memory.h"

namespace gradus {
namespace {

constexpr std::array kinds{ProfileKind::layer, ProfileKind::kernel, ProfileKind::stage, ProfileKind::scope};
constexpr std::size_t most_rows = 12;  // of a kind
constexpr std::size_t name_width = 40;

std::string fixed(double value, int digits) { return text(std::fixed, std::setprecision(digits), value); }

std::string time_text(double seconds) {
  if (seconds >= 1) return fixed(seconds, 3) + " s";
  if (seconds >= 1e-3) return fixed(seconds * 1e3, 2) + " ms";
  return fixed(seconds * 1e6, 1) + " us";
}
std::string bytes_text(std::size_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (bytes >= GiB) return fixed(size / GiB, 2) + " GiB";
  if (bytes >= MiB) return fixed(size / MiB, 1) + " MiB";
  return fixed(size / KiB, 1) + " KiB";
}
std::string percent(double share) { return share > 0 ? fixed(100 * share, 0) + "%" : ""; }

/// The name distinguishes a kernel or layer of a stage from one of the same name in the model.
std::string full_name(const ProfileRow& row) { return row.stage.empty() ? row.name : row.name + " in " + row.stage; }

/// A name of any length in the width of its column: its end tells layers apart.
std::string shortened(const std::string& name) {
  if (name.size() <= name_width) return name;
  return "..." + name.substr(name.size() - name_width + 3);
}

std::string line(const std::string& name, const std::string& calls, const std::string& time, const std::string& bytes,
                 const std::string& peak, const std::string& bandwidth, const std::string& waiting) {
  return text(std::left, std::setw(name_width), name, std::right, std::setw(9), calls, std::setw(12), time,
              std::setw(12), bytes, std::setw(6), peak, std::setw(7), bandwidth, std::setw(12), waiting, '\n');
}

void print_kind(std::ostream& out, const ProfileReport& report, ProfileKind kind) {
  std::size_t shown = 0, left_out = 0;
  for (const ProfileRow& row : report.rows) {
    if (row.kind != kind) continue;
    if (shown == 0)
      out << line(std::string(name_of(kind)), kind == ProfileKind::stage ? "elements" : "calls", "time", "bytes",
                  "peak", "memory", "waited for");
    if (shown == most_rows) {
      ++left_out;
      continue;
    }
    ++shown;
    out << line(shortened(printable(full_name(row), true)), std::to_string(row.calls), time_text(row.seconds),
                bytes_text(row.bytes), percent(row.of_peak), percent(row.of_bandwidth),
                row.waiting > 0 ? time_text(row.waiting) : "");
  }
  if (left_out > 0) out << "(" << left_out << " more)\n";
  if (shown > 0) out << '\n';
}

nlohmann::ordered_json json_of(const ProfileRow& row) {
  return {{"name", row.name},
          {"kind", name_of(row.kind)},
          {"calls", row.calls},
          {"seconds", row.seconds},
          {"bytes", row.bytes},
          {"flops", row.flops},
          {"of_peak", row.of_peak},
          {"of_bandwidth", row.of_bandwidth},
          {"waiting_seconds", row.waiting},
          {"gradient_seconds", row.gradient_seconds},
          {"stage", row.stage}};
}

}  // namespace

std::string_view name_of(ProfileKind kind) {
  switch (kind) {
    case ProfileKind::kernel: return "kernel";
    case ProfileKind::layer: return "layer";
    case ProfileKind::stage: return "stage";
    case ProfileKind::scope: return "scope";
  }
  return "";
}

std::string ProfileReport::to_json() const {
  nlohmann::ordered_json json{{"seconds", seconds},
                              {"compute", compute},
                              {"input_wait", input_wait},
                              {"compile", compile},
                              {"communication", communication},
                              {"host", host},
                              {"peak_bytes", peak_bytes},
                              {"threads", threads},
                              {"waiting_seconds", waiting},
                              {"unobserved_ops", unobserved},
                              {"peak_flops", peak_flops},
                              {"peak_bandwidth", peak_bandwidth}};
  json["rows"] = nlohmann::ordered_json::array();
  for (const ProfileRow& row : rows) json["rows"].push_back(json_of(row));
  json["suggestions"] = nlohmann::ordered_json::array();
  for (const Suggestion& s : suggestions)
    json["suggestions"].push_back(
        {{"lever", s.lever}, {"reason", s.reason}, {"gain_seconds", s.gain_seconds}, {"remedy", s.remedy}});
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::ostream& operator<<(std::ostream& out, const ProfileReport& report) {
  TextStream written;
  written << time_text(report.seconds) << ":";
  const std::array<std::pair<const char*, double>, 5> parts{{{"compute", report.compute},
                                                             {"input wait", report.input_wait},
                                                             {"compile", report.compile},
                                                             {"communication", report.communication},
                                                             {"host", report.host}}};
  for (const auto& [name, seconds] : parts)
    written << ' ' << name << ' ' << fixed(report.seconds > 0 ? 100 * seconds / report.seconds : 0, 1) << "%"
            << (name == std::string_view("host") ? "\n" : ",");
  written << report.threads << " threads, which waited " << time_text(report.waiting) << "; peak of memory "
          << bytes_text(report.peak_bytes) << "\n\n";
  if (report.unobserved > 0)
    written << report.unobserved << " ops were recorded here that have not run, since nobody looked at a value that "
            << "takes them:\nthis report has none of their time. Look at one within the profile: item(), "
               "synchronize().\n\n";
  for (const ProfileKind kind : kinds) print_kind(written, report, kind);
  for (const Suggestion& s : report.suggestions)
    written << "try " << s.lever << ", which gains up to " << time_text(s.gain_seconds) << ": " << s.reason
            << (s.remedy.empty() ? "" : "; ") << s.remedy << ".\n";
  return out << std::move(written).str();
}

}  // namespace gradus

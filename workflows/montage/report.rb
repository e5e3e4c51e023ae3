# frozen_string_literal: true

require "json"

# What only the engine's own process knows of a run: facts for the record, and its issues.
module Report
  module_function

  # +alone+ are the tiles that overlap no other one; +more+ become facts as they are named.
  def write(directory, alone:, **more)
    facts = { engine: engine, remote: remote, ruby: RUBY_VERSION, montage: montage_version, **more }
    facts[:filesystem] = Rake.application.options.filesystem if defined?(Pwrake)
    save(directory, "facts.json", facts.transform_values(&:to_s))
    issues = alone.map { |name| "#{name} overlaps no other tile: its background is not matched" }
    save(directory, "issues.json", issues) unless issues.empty?
  end

  def engine
    defined?(Pwrake) ? "pwrake #{Pwrake::VERSION}" : "rake #{Rake::VERSION}"
  end

  # How commands reach other hosts: Pwrake's workers, by ssh.
  def remote = defined?(Pwrake) ? "ssh" : ENV.fetch("MONTAGE_REMOTE", "none")

  # Montage's programs do not tell their version; the package they came in may.
  def montage_version
    place = ENV["PATH"].split(":").find { |directory| File.exist?("#{directory}/mAdd") }
    return "unknown, from #{place}" unless place == "/usr/bin" && File.exist?("/usr/bin/dpkg-query")

    IO.popen(%w[dpkg-query --show --showformat=${Version} montage], &:read)
  end

  def save(directory, name, content)
    File.write(File.join(directory, name), "#{JSON.pretty_generate(content)}\n")
  end
end

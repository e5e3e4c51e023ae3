# frozen_string_literal: true

# Pwrake 2.3.1 re-enters the lock of its task queue from another fiber of the same thread. Since
# Ruby 3.0 a Monitor belongs to a fiber, so that blocks for ever, without a word, as soon as the
# graph has an input file. Loaded before Pwrake, this gives it a monitor that belongs to a thread.
module Pwrake
  class Monitor
    def initialize
      @free = Thread::Queue.new([:token])
      @owner = nil
      @depth = 0
    end

    def synchronize
      @free.pop unless @owner == Thread.current
      @owner = Thread.current
      @depth += 1
      begin
        yield
      ensure
        @depth -= 1
        if @depth.zero?
          @owner = nil
          @free << :token
        end
      end
    end
  end
end

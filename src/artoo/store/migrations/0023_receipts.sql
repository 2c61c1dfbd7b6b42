-- What says that a transaction was committed when the answer to its COMMIT did not come.

CREATE TABLE receipts (
    token uuid PRIMARY KEY,
    void boolean NOT NULL DEFAULT FALSE,
    at_us bigint NOT NULL DEFAULT now_us()
);
COMMENT ON TABLE receipts IS
    'One row for each write whose writer does not know yet that it was committed; the next write of its process forgets it.';
COMMENT ON COLUMN receipts.void IS 'It was not committed when its writer asked, and cannot be any more.';
